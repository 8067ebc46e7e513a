"""Settings: layers, checks, errors that name file and line, choice of provider."""

from __future__ import annotations

import os
import threading
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openheim import Runtime, _reading
from openheim.config import lines
from openheim.config.load import environment_layer, load_config
from openheim.config.selection import Selection, select_provider
from openheim.errors import ConfigError, OpenheimError

Write = Callable[[str], Path]


@pytest.fixture
def write(own_environment: Path) -> Write:
    def write(text: str) -> Path:
        own_environment.mkdir(parents=True, exist_ok=True)
        path = own_environment / "config.toml"
        path.write_text(text)
        return path

    return write


def load(**options: Any) -> Any:
    return load_config(environment=options.pop("environment", {}), **options)


def select(environment: dict[str, str] | None = None, **wanted: Any) -> Selection:
    return select_provider(load().config, environment=environment or {}, **wanted)


def test_without_a_file_the_defaults_apply() -> None:
    config = load().config
    assert (config.max_iterations, config.allow_shell, config.providers) == (10, False, {})
    assert (config.permissions.gate, config.permissions.mode) == ("ask", "default")


def test_later_layers_win_key_by_key(write: Write) -> None:
    write('max_iterations = 3\n[http]\nproxy = "http://a"\nca_file = "ca.pem"\n')
    loaded = load(environment={"OPENHEIM_HTTP__PROXY": "http://b"}, flags={"max_iterations": 7})
    assert (loaded.config.max_iterations, loaded.config.http.proxy, loaded.config.http.ca_file) == (
        7,
        "http://b",
        "ca.pem",
    )
    assert [layer.name for layer in loaded.layers] == ["user", "environment", "flags"]


def test_variables_become_settings() -> None:
    layer = environment_layer(
        {
            "OPENHEIM_MAX_ITERATIONS": "4",
            "OPENHEIM_ALLOW_SHELL": "true",
            "OPENHEIM_PROVIDERS__OPENAI__DEFAULT_MODEL": "o3",
            "OPENHEIM_PERMISSIONS__ALLOW": '["read_file"]',
            "OPENHEIM_WORK_DIR": "2024-plans",
            "OPENHEIM_HOME": "/x",
            "OPENHEIM_LOG": "debug",
            "OPENHEIM_COMMAND": "6e2f",
            "OTHER": "y",
            "OPENHEIM_DATA_DIR": "",
        }
    )
    assert layer.values == {
        "max_iterations": 4,
        "allow_shell": True,
        "providers": {"openai": {"default_model": "o3"}},
        "permissions": {"allow": ["read_file"]},
        "work_dir": "2024-plans",
    }


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("max_iterations = 0\n", "line 1: max_iterations must be at least 1"),
        ("\n\nmax_iterations = [1]\n", "line 3: max_iterations must be integer, not array"),
        ('[providers.x]\napi_base = "https://h"\ntimeout_secs = -1\n', "line 3: providers.x.timeout_secs"),
        ('[permissions]\nmode = "fast"\n', "line 2: permissions.mode"),
        ("max_iterations = \n", "line 1: not valid TOML"),
        ("[providers\n", "line 1: not valid TOML"),
        ("providers = 3\n", "line 1: providers"),
        ('[providers."a.b"]\napi_base = "https://h"\n\nmax_tokens = 0 # none\n', 'line 4: providers."a.b".max_tokens'),
        (
            '[permissions]\nallow = ["read_file"]\ndeny = ["edit_file(src"]\n',
            "line 3: permissions.deny[0]: cannot read",
        ),
        ('data_dir = "~nosuchuser/x"\n', "line 1: data_dir: no home folder is known for ~nosuchuser"),
        ('\nwork_dir = "a\\u0000b"\n', "line 2: work_dir holds a character"),
        ('[http]\nproxy = "http://[::1"\n', "line 2: http.proxy is no usable address"),
        ('[http]\nca_file = "~nosuchuser/x"\n', "line 2: http.ca_file: no home folder"),
    ],
)
def test_a_wrong_value_is_an_error_with_file_and_line(write: Write, text: str, complaint: str) -> None:
    path = write(text)
    with pytest.raises(ConfigError) as caught:
        load()
    assert str(path) in caught.value.message
    assert complaint in caught.value.message


def test_a_wrong_value_in_the_environment_names_the_variable() -> None:
    with pytest.raises(ConfigError, match="OPENHEIM_MAX_ITERATIONS"):
        load(environment={"OPENHEIM_MAX_ITERATIONS": "many"})


@pytest.mark.parametrize(
    "text",
    [
        f"a = {'[' * 5000}{']' * 5000}\n",
        f"a = {'[' * 60}{']' * 60}\n",
        f"[{'.'.join('a' * 5000)}]\n",
        f"{'.'.join('a' * 60)} = 1\n",
        f"a = {'9' * 5000}\n",
    ],
    ids=["arrays", "a few arrays", "tables", "a few tables", "digits"],
)
def test_a_file_beyond_all_measure_is_an_error(write: Write, text: str) -> None:
    path = write(text)
    with pytest.raises(ConfigError) as caught:
        load()
    assert str(path) in caught.value.message


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OPENHEIM_MAX_ITERATIONS", "[" * 5000 + "]" * 5000),
        ("OPENHEIM_TOOLS__FS__X", "[" * 60 + "]" * 60),
        ("OPENHEIM_TOOLS__" + "__".join("A" * 5000), "1"),
    ],
)
def test_a_variable_beyond_all_measure_is_an_error(variable: str, value: str) -> None:
    with pytest.raises(ConfigError, match="nested too deeply"):
        load(environment={variable: value})


def test_a_file_that_is_no_utf8_is_an_error_with_its_line(write: Write) -> None:
    write("").write_bytes(b"# fine\n# \xff\n")
    with pytest.raises(ConfigError, match="line 2: not UTF-8"):
        load()


def test_a_file_that_was_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no config file"):
        load(path=str(tmp_path / "none.toml"))


def test_an_unknown_key_is_a_warning_with_the_closest_one(write: Write) -> None:
    path = write(
        'max_iteration = 3\n[permissions]\nallw = []\n[providers.x]\napi_base = "https://h"\nflavour = "mint"\n'
    )
    loaded = load()
    assert loaded.warnings == (
        f"{path}, line 1: unknown setting max_iteration is ignored; did you mean max_iterations?",
        f"{path}, line 3: unknown setting permissions.allw is ignored; did you mean allow?",
    )
    assert loaded.config.max_iterations == 10


def test_secrets_are_not_shown(write: Write) -> None:
    write(
        '[providers.x]\napi_base = "https://canary:canary@h"\napi_key = "canary"\nextra_headers = {a = "canary"}\n'
        '[http]\nproxy = "http://canary:canary@h"\n[tools.x]\na = ["canary"]\n[transports.x]\na = "canary"\n'
        '[gates.x.y]\na = "canary"\n[mcp_servers.x.env]\na = "canary"\n[memory]\na = "canary"\n[tui]\na = "canary"\n'
        '[plugins]\na = "canary"\n[other]\na = "canary"\n'
    )
    loaded = load(flags={"providers": {"y": {"api_key": "canary"}}, "default_provider": "x"})
    config = loaded.config
    selection = select_provider(config, environment={})
    assert selection.settings.api_key == "canary"
    assert loaded.layers[0].values["tools"] == {"x": {"a": ["canary"]}}
    shown = [loaded, *loaded.layers, config, *config.providers.values(), config.http, selection, selection.settings]
    shown += [config.tools, config.transports, config.gates, config.mcp_servers, selection.options]
    for one in shown:
        assert "canary" not in repr(one) + str(one)
    assert "tools={'x': PluginTable(a)}" in repr(config)


# --- work directory ---


def test_work_dir_is_resolved_from_the_start_directory_and_must_be_one(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    write('work_dir = "link"\n')
    loaded = load()
    # Neither the session's directory nor where the process goes later counts.
    monkeypatch.chdir(tmp_path / "other")
    assert loaded.work_dir(tmp_path / "other") == (tmp_path / "real").resolve()
    monkeypatch.chdir(tmp_path)
    for name in ("missing", "file", "circle"):
        write(f'work_dir = "{name}"\n')
        with pytest.raises(ConfigError, match="work directory"):
            load().work_dir(tmp_path)


def test_without_work_dir_the_sessions_directory_is_the_boundary(tmp_path: Path) -> None:
    assert load().work_dir(tmp_path) == tmp_path.resolve()


def test_data_dir_moves_what_is_kept(write: Write, own_environment: Path, tmp_path: Path) -> None:
    assert load().data_dir == own_environment
    write(f'data_dir = "{tmp_path}/data"\n')
    assert load().data_dir == tmp_path / "data"


def test_a_relative_data_dir_stays_where_the_process_was_started(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write('data_dir = "data"\n')
    monkeypatch.chdir(tmp_path)
    loaded = load()
    monkeypatch.chdir("/")
    assert loaded.data_dir == tmp_path / "data"


def test_a_home_folder_may_be_meant_by_a_tilde(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "key").write_text("\ufefffrom-file\n", encoding="utf-8")
    write('data_dir = "~/data"\n[providers.x]\napi_base = "https://h"\napi_key_file = "~/key"\n')
    assert load().data_dir == tmp_path / "data"
    assert select().settings.api_key == "from-file"


# --- choice of provider ---

TWO = """
[providers.beta]
api_base = "https://beta.example/v1/"
models = ["m1", "m2"]
[providers.alpha]
api_base = "https://alpha.example/v1"
models = ["m2", "m3"]
default_model = "m3"
"""


def test_without_config_and_key_the_demo_answers_and_says_so() -> None:
    selection = select()
    assert selection.settings.kind == "demo"
    assert "OPENAI_API_KEY" in selection.notice


def test_the_first_key_found_decides() -> None:
    keys = {"GEMINI_API_KEY": "g", "OPENAI_API_KEY": "o"}
    selection = select(keys)
    assert (selection.settings.kind, selection.settings.api_key, selection.notice) == ("openai", "o", "")
    assert select(keys | {"ANTHROPIC_API_KEY": "a"}).settings.kind == "anthropic"
    assert select({"OPENAI_API_KEY": ""}).settings.kind == "demo"


def test_a_single_entry_is_the_default_and_several_need_one(write: Write) -> None:
    write('[providers.local]\napi_base = "http://127.0.0.1:1"\n')
    assert select({"OPENAI_API_KEY": "o"}).settings.name == "local"
    assert select().settings.kind == "openai_compatible"
    write(TWO)
    with pytest.raises(ConfigError, match="none is the default"):
        select()
    write('default_provider = "beta"\n' + TWO)
    selection = select()
    assert (selection.settings.name, selection.model, selection.settings.api_base) == (
        "beta",
        "m1",
        "https://beta.example/v1",
    )


def test_a_bare_model_is_looked_up_in_order_of_entry_names(write: Write) -> None:
    write('default_provider = "beta"\n' + TWO)
    assert select(model="m2").settings.name == "alpha"
    assert select(model="m1").settings.name == "beta"
    with pytest.raises(ConfigError, match=r"unknown model 'm9' \(there are: m"):
        select(model="m9")
    with pytest.raises(ConfigError, match="of provider 'alpha'"):
        select(provider="alpha", model="m1")


def test_an_empty_list_of_models_allows_any(write: Write) -> None:
    write('[providers.local]\napi_base = "http://127.0.0.1:1"\n')
    assert select(model="anything").model == "anything"
    assert select(provider="local", model="other").model == "other"


def test_unknown_providers_get_the_closest_names(write: Write) -> None:
    write(TWO)
    with pytest.raises(ConfigError, match=r"unknown provider 'alpah' \(did you mean alpha\?"):
        select(provider="alpah")
    write('default_provider = "gamma"\n' + TWO)
    with pytest.raises(ConfigError, match="default_provider names unknown provider 'gamma'"):
        select()


def test_kind_comes_from_the_name_unless_it_is_given(write: Write) -> None:
    write('[providers.anthropic]\napi_base = "https://h"\n')
    assert select().settings.kind == "anthropic"
    write('[providers.anthropic]\napi_base = "https://h"\nkind = "openai"\n')
    assert select().settings.kind == "openai"


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        ('api_base = ""', "config.toml, line 2: api_base of provider 'x' must start with http"),
        ('api_base = "ftp://h"', "must start with http"),
        ('api_base = "https://:8080/v1"', "names no host"),
        ('api_base = "https://user:canary@/v1"', "names no host"),
        ('api_base = "http://[::1"', "is not of the form"),
        ('api_base = "http://[::1]x:80"', "is not of the form"),
        ('api_base = "http://[::x]:80"', "names a host that cannot exist"),
        ('api_base = "https://exa mple.com"', "must not hold blanks"),
        ('api_base = "https://h/v1\\n"', "must not hold blanks or control characters"),
        ('api_base = "https://h:99999/v1"', "has a port that is not between 1 and 65535"),
        ('api_base = "https://h:0"', "has a port that is not"),
        ('api_base = "https://h:80x"', "is not of the form"),
        ('api_base = "https://a..b"', "names a host that cannot exist"),
        ('api_base = "https://999.1.1.1"', "names a host that cannot exist"),
        ('api_base = "https://\u2603.example"', "names a host that cannot exist"),
        ('api_base = "https://h/v1?key=canary"', "must end with its path"),
        ('api_base = "https://h"\napi_key = "canary\u00e9"', "line 3: the key of .*a character that no key has"),
        ('api_base = "https://h"\napi_key = "ca\\u0000nary"', "from api_key, holds a line break or a character"),
        ('api_base = "https://h"\nenv_var = "BAD"', "from BAD, holds a line break or a character"),
        ('api_base = "https://h"\napi_key_file = "~nosuchuser/k"', "line 3: api_key_file .*no home folder"),
        ('api_base = "https://h"\napi_key_file = "/dev/zero"', "is too long for a key"),
        ('api_base = "http://h"\napi_key = "k"', "plain http"),
        ('api_base = "https://h"\nmodels = ["a"]\ndefault_model = "b"', "is not among its models"),
        ('api_base = "https://h"\napi_key_file = "/nonexistent/key"', "cannot read api_key_file"),
    ],
)
def test_entries_that_cannot_be_used(write: Write, entry: str, complaint: str) -> None:
    write(f"[providers.x]\n{entry}\n")
    with pytest.raises(ConfigError, match=complaint) as caught:
        select({"BAD": "canary\ncanary"})
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "written", ["'off'", "'adaptive'", "'xhigh'", "0", "4096", "{ default = 'off', 'big.1' = 2000 }"]
)
def test_ways_of_thinking(write: Write, written: str) -> None:
    write(f"[providers.x]\napi_base = 'http://127.0.0.1'\nthinking = {written}\n")
    assert select().settings.thinking == ("off" if "{" in written else tomllib.loads(f"v = {written}")["v"])


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("'hihg'", "thinking of provider 'x' is no way of thinking .*high"),
        ("{ m = 'on' }", "line 3: .*is no way of thinking"),
        ("-1", "thinking must be at least 0"),
        ("{ m = [] }", "thinking.m must be string or integer"),
        ("true", "thinking must be string or integer or object"),
    ],
)
def test_what_is_no_way_of_thinking(write: Write, written: str, complaint: str) -> None:
    write(f"[providers.x]\napi_base = 'http://127.0.0.1'\nthinking = {written}\n")
    with pytest.raises(ConfigError, match=complaint):
        select()


@pytest.mark.parametrize(
    "address",
    [
        "https://h",
        "https://h:/v1/",
        "http://127.0.0.1:8080/v1",
        "http://[::1]:8080/v1",
        "http://my_host:65535",
        "https://user:pass@h.example.:443/a b".replace(" ", "%20"),
        "https://b\u00fccher.example/v1",
    ],
)
def test_addresses_that_can_be_used(write: Write, address: str) -> None:
    write(f'[providers.x]\napi_base = "{address}"\n')
    assert select().settings.api_base == address.rstrip("/")


def test_plain_http_without_a_key_is_fine(write: Write) -> None:
    write('[providers.x]\napi_base = "http://127.0.0.1:8080/v1"\n')
    assert select().settings.api_key == ""


def test_where_the_key_comes_from(write: Write, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from-file\n")
    base = f'[providers.x]\napi_base = "https://h"\nenv_var = "MY_KEY"\napi_key_file = "{tmp_path}/key"\n'
    write(base + 'api_key = "inline"\n')
    assert select({"MY_KEY": "from-env"}).settings.api_key == "from-env"
    assert select({"MY_KEY": ""}).settings.api_key == "inline"
    write(base)
    assert select().settings.api_key == "from-file"


def test_a_vendors_key_is_not_sent_to_another_address_by_itself(write: Write) -> None:
    write('[providers.openai]\napi_base = "https://proxy.example/v1"\n')
    assert select({"OPENAI_API_KEY": "o"}).settings.api_key == ""
    write('[providers.openai]\napi_base = "https://proxy.example/v1"\nenv_var = "OPENAI_API_KEY"\n')
    assert select({"OPENAI_API_KEY": "o"}).settings.api_key == "o"
    write('[providers.openai]\ndefault_model = "x"\n')
    assert select({"OPENAI_API_KEY": "o"}).settings.api_key == "o"


def test_keys_of_the_plugin_are_handed_on(write: Write) -> None:
    write('[providers.x]\napi_base = "https://h"\nflavour = "mint"\n')
    assert select().options == {"flavour": "mint"}


# --- files that are none ---


@pytest.mark.parametrize("target", [None, "/dev/zero", "/"])
def test_a_config_file_that_is_no_file_is_not_waited_for(own_environment: Path, target: str | None) -> None:
    own_environment.mkdir()
    path = own_environment / "config.toml"
    if target is None:
        os.mkfifo(path)
    else:
        path.symlink_to(target)
    with pytest.raises(ConfigError, match=r"cannot read .*config\.toml"):
        load()


def test_the_null_device_stands_for_no_settings() -> None:
    assert load(path=os.devnull).config.default_provider is None


def test_a_file_that_is_named_may_be_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)
    os.write(writer, b"max_iterations = 7\n")
    threading.Timer(0.05, os.close, [writer]).start()
    assert load(path=str(path)).config.max_iterations == 7


def test_a_pipe_that_is_named_is_given_up_when_nothing_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_reading, "PATIENCE_SECS", 0.05)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(ConfigError, match="nothing came for"):
        load(path=str(path))
    writer = os.open(path, os.O_RDWR)
    os.write(writer, b"max_iter")
    with pytest.raises(ConfigError, match="nothing came for"):
        load(path=str(path))
    os.close(writer)


def test_an_endless_file_that_is_named_is_too_long() -> None:
    with pytest.raises(ConfigError, match="longer than 4 MiB"):
        load(path="/dev/zero")


def test_a_file_is_read_once_for_the_lines_of_all_its_keys(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []
    real = lines.read_regular
    monkeypatch.setattr(lines, "read_regular", lambda path, **options: read.append(path) or real(path, **options))
    path = write("".join(f"unknown_{number} = 1\n" for number in range(20)))
    found = load().findings
    assert [finding.line for finding in found] == list(range(1, 21))
    assert read == [path]
    # What has changed is read again.
    write("\n" + path.read_text())
    assert [finding.line for finding in load().findings] == list(range(2, 22))


# --- keys in wrong places ---


@pytest.mark.parametrize(
    "key", ["sk-proj-abcdef123456", "AIzaSyA1234567890abcdefghij", "0123456789abcdef0123456789abcdef"]
)
@pytest.mark.parametrize(
    "text",
    [
        'default_provider = "{}"\n',
        '[providers.a]\nkind = "{}"\n',
        '[providers.a]\nkind = "demo"\nenv_var = "{}"\n',
        '[providers.a]\nkind = "demo"\napi_key = {{ env = "{}" }}\n',
        '[providers.a]\nkind = "demo"\nmodels = ["m"]\ndefault_model = "{}"\n',
        '[providers.a]\nkind = "demo"\nmodels = ["{}"]\ndefault_model = "m"\n',
        '[permissions]\ngate = "{}"\n',
        '[permissions]\nmode = "{}"\n',
        '[permissions]\nallow = ["({}"]\n',
    ],
)
def test_a_key_in_a_wrong_place_is_not_repeated(write: Write, text: str, key: str) -> None:
    write(text.format(key))
    with pytest.raises(OpenheimError) as caught:
        Runtime.from_config().new_session()
    assert key not in f"{caught.value} {caught.value.hint}"


def test_a_model_in_the_place_of_a_key_is(write: Write) -> None:
    write('[providers.a]\nkind = "demo"\nmodels = ["m"]\n')
    for name in ("claude-sonnet-4-6-20260101", "meta-llama/Llama-3.3-70B-Instruct-Turbo", "gpt-4o-mini-2024-07-18"):
        with pytest.raises(ConfigError, match=f"unknown model '{name}'"):
            select(provider="a", model=name)
