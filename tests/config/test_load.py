"""Settings: layers, checks, errors that name file and line, choice of provider."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from openheim.config.load import environment_layer, load_config
from openheim.config.selection import Selection, select_provider
from openheim.errors import ConfigError
from tests.config.conftest import Write


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
            "OPENHEIM_PROVIDERS__A__API_KEY": "123",
            "OPENHEIM_PROVIDERS__B__API_KEY": '{ env = "B_KEY" }',
            "OPENHEIM_PROVIDERS__B__THINKING": "1024",
            "OPENHEIM_HOME": "/x",
            "OPENHEIM_LOG": "debug",
            "OTHER": "y",
            "OPENHEIM_DATA_DIR": "",
        }
    )
    assert layer.values == {
        "max_iterations": 4,
        "allow_shell": True,
        "providers": {
            "openai": {"default_model": "o3"},
            "a": {"api_key": "123"},
            "b": {"api_key": {"env": "B_KEY"}, "thinking": 1024},
        },
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


def test_a_file_that_is_no_utf8_is_an_error_with_its_line(write: Write) -> None:
    write("").write_bytes(b"# fine\n# \xff\n")
    with pytest.raises(ConfigError, match="line 2: not UTF-8"):
        load()


def test_a_file_that_was_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no config file"):
        load(path=str(tmp_path / "none.toml"))


def test_a_wrong_value_in_the_environment_says_how_lists_are_written() -> None:
    with pytest.raises(ConfigError, match=r'OPENHEIM_DEFAULT_SKILLS: .*must be array.*\["one", "two"\]'):
        load(environment={"OPENHEIM_DEFAULT_SKILLS": "a,b"})


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"\xef\xbb\xbf# bom\r\n\r\nmax_iterations = 'x'\r\n", 3),
        (b'a = """\nmax_iterations = 1\n"""\nmax_iterations = "x"\n', 4),
        ("# \u2028 no line break \x85\nmax_iterations = 'x'\n".encode(), 2),
    ],
)
def test_lines_are_counted_as_editors_count_them(write: Write, text: bytes, line: int) -> None:
    write("").write_bytes(text)
    with pytest.raises(ConfigError, match=f"line {line}: max_iterations"):
        load()


def test_files_that_are_too_much(write: Write) -> None:
    write("x = " + "[" * 5000)
    with pytest.raises(ConfigError, match=r"config\.toml.*(nested too deeply|not valid TOML)"):
        load()
    write("").write_bytes(b"#" * (5 * 2**20))
    with pytest.raises(ConfigError, match="longer than 4 MiB"):
        load()


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


def test_a_slip_in_a_provider_entry_names_the_core_s_key(write: Write) -> None:
    write('[providers.x]\napi_base = "https://h"\ndefualt_model = "m"\nextra_body = {}\n')
    (warning,) = load().warnings
    assert "line 3: providers.x.defualt_model" in warning
    assert "did you mean default_model?" in warning


def test_secrets_are_not_shown(write: Write) -> None:
    write('[providers.x]\napi_base = "https://h"\napi_key = "sk-canary"\n')
    loaded = load()
    selection = select_provider(loaded.config, environment={})
    assert selection.settings.api_key == "sk-canary"
    assert "sk-canary" not in repr(loaded) + repr(loaded.layers) + repr(selection)


# --- work directory ---


def test_work_dir_is_resolved_from_the_start_directory_and_must_be_one(write: Write, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "file").write_text("")
    write('work_dir = "link"\n')
    assert load().work_dir(tmp_path) == (tmp_path / "real").resolve()
    for name in ("missing", "file"):
        write(f'work_dir = "{name}"\n')
        with pytest.raises(ConfigError, match="work directory"):
            load().work_dir(tmp_path)


def test_data_dir_moves_what_is_kept(write: Write, own_environment: Path, tmp_path: Path) -> None:
    assert load().data_dir == own_environment
    write(f'data_dir = "{tmp_path}/data"\n')
    assert load().data_dir == tmp_path / "data"


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
    with pytest.raises(ConfigError, match=r"unknown provider 'alpah' \(there are: alpha\)"):
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
        ('api_base = ""', "must start with http"),
        ('api_base = "ftp://h"', "must start with http"),
        ('api_base = "http://h"\napi_key = "k"', "plain http"),
        ('api_base = "https://h"\nmodels = ["a"]\ndefault_model = "b"', "is not among its models"),
        ('api_base = "https://h"\napi_key_file = "/nonexistent/key"', "cannot read api_key_file"),
    ],
)
def test_entries_that_cannot_be_used(write: Write, entry: str, complaint: str) -> None:
    write(f"[providers.x]\n{entry}\n")
    with pytest.raises(ConfigError, match=complaint):
        select()


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
    assert select().settings.key_variable == "MY_KEY"


def test_a_variable_that_is_asked_for_by_name_must_be_set(write: Write) -> None:
    write('[providers.x]\napi_base = "https://h"\nenv_var = "MY_KEY"\n')
    assert load().config.providers["x"].env_var == "MY_KEY"
    with pytest.raises(ConfigError, match="provider 'x' has no key: the variable MY_KEY is not set"):
        select()
    assert select({"MY_KEY": " k\n"}).settings.api_key == "k"


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
