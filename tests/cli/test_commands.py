"""The other commands, and what all of them share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import LIMIT, Command, finish
from tests.plugins.distributions import make_distribution
from tests.support.replies import raw
from tests.support.server import ScriptedServer


def test_version(openheim: Command) -> None:
    from openheim import __version__

    for arguments in (["--version"], ["--debug", "--version"]):
        ended = openheim(*arguments)
        assert (ended.code, ended.out, ended.err) == (0, f"openheim {__version__}\n", "")


def test_help_names_every_command_and_who_brings_the_others(openheim: Command) -> None:
    ended = openheim("--help")
    assert ended.code == 0
    for word in (
        "run",
        "init",
        "plugins",
        "tools",
        "models",
        "doctor",
        "acp",
        "serve",
        "openheim-transport-ws",
        "--log-level",
    ):
        assert word in ended.out
    assert openheim().out == ended.out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["frobnicate"], "No such command 'frobnicate'"),
        (["serve"], "pip install openheim-transport-ws"),
        (["--log-level", "loud", "doctor"], "unknown log level 'loud'"),
        (["--config"], "option --config needs a value"),
        (["tools", "call"], "NAME"),
        (["plugins", "nope"], "nope"),
    ],
)
def test_slips_on_the_command_line(openheim: Command, arguments: list[str], complaint: str) -> None:
    ended = openheim(*arguments)
    assert ended.code == 2
    assert complaint in ended.error
    assert ended.out == ""


def test_the_same_program_by_both_names(openheim: Command) -> None:
    script = Path(sys.executable).parent / "openheim"
    done = subprocess.run([script, "--version"], capture_output=True, text=True, timeout=LIMIT, check=True)
    assert done.stdout == openheim("--version").out


def test_a_closed_standard_output_ends_up_in_no_file(openheim: Command) -> None:
    process = subprocess.run(
        ["sh", "-c", '"$0" -m openheim run --provider demo hello >&- 2>&- <&-', sys.executable],
        cwd=openheim.folder,
        env=openheim.environment,
        timeout=LIMIT,
    )
    assert process.returncode == 0
    for session in (openheim.home / "history").glob("*.jsonl"):
        for line in session.read_text().splitlines():
            json.loads(line)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_device_on_standard_output(openheim: Command) -> None:
    with open("/dev/full", "wb") as full:
        process = openheim.start("tools", "list", stdout=full)
        _out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 1
    assert err.decode().splitlines()[-1].startswith("error: ")
    assert b"Traceback" not in err


# --- init ---


def test_init_writes_once_and_never_overwrites(openheim: Command) -> None:
    ended = openheim("init")
    assert ended.code == 0
    config, identity = openheim.home / "config.toml", openheim.home / "system.md"
    assert ended.out.splitlines()[:2] == [f"wrote {config}", f"wrote {identity}"]
    config.write_text("# mine\n")
    identity.unlink()
    again = openheim("init", "--provider", "openai")
    assert again.out.splitlines()[:2] == [f"kept {config} as it is", f"wrote {identity}"]
    assert config.read_text() == "# mine\n"


@pytest.mark.parametrize("way", ["config", "environment"])
def test_init_writes_the_identity_where_sessions_read_it(openheim: Command, tmp_path: Path, way: str) -> None:
    data = tmp_path / "data"
    environment = {"OPENHEIM_DATA_DIR": str(data)} if way == "environment" else {}
    if way == "config":
        openheim.configure(f'data_dir = "{data}"\n')
    assert f"wrote {data / 'system.md'}" in openheim("init", env=environment).out.splitlines()
    assert not (openheim.home / "system.md").exists()
    (data / "system.md").write_bytes(b"\xff")
    ended = openheim("run", "--provider", "demo", "hello", env=environment)
    assert f"{data / 'system.md'} is not UTF-8" in ended.error


def test_init_beside_a_config_that_cannot_be_read(openheim: Command) -> None:
    openheim.configure("[broken\n")
    ended = openheim("init")
    assert ended.code == 2
    assert "config.toml, line 1: not valid TOML" in ended.error
    assert (openheim.home / "config.toml").read_text() == "[broken\n"


def test_init_says_what_comes_next(openheim: Command) -> None:
    openheim.hide("openheim-provider-anthropic", "openheim-provider-gemini")
    assert "next: set OPENAI_API_KEY, or edit" in openheim("init", env={"GEMINI_API_KEY": "k"}).out
    assert "next: openheim run" in openheim("init", env={"OPENAI_API_KEY": "k"}).out
    assert "next: pip install openheim-provider-gemini" in openheim("init", "--provider", "gemini").out
    assert "next: set OPENAI_API_KEY," in openheim("init", "--provider", "openai", env={"GEMINI_API_KEY": "k"}).out
    assert "next: openheim run" in openheim("init", "--provider", "local").out


@pytest.mark.parametrize("provider", [None, "openai", "anthropic", "gemini", "local", "demo"])
def test_what_init_writes_is_a_config_without_warnings(openheim: Command, provider: str | None) -> None:
    assert openheim("init", *(("--provider", provider) if provider else ())).code == 0
    ended = openheim("tools", "list", "--json")
    assert (ended.code, ended.err) == (0, "")
    # Uncommented line by line it is valid as well.
    lines = (openheim.home / "config.toml").read_text().splitlines()
    settings = [line.removeprefix("# ") for line in lines if line.startswith("# ") and ("=" in line or "[" in line[:3])]
    if provider is None:
        openheim.configure("\n".join(line for line in settings if " = " in line or line.startswith("[")))
        ended = openheim("plugins", "list")
        assert (ended.code, ended.err) == (0, "")


def test_init_without_room_leaves_nothing_half_written(openheim: Command) -> None:
    program = ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", sys.executable, "-m", "openheim", "init"]
    ended = finish(openheim.start_program(program))
    assert ended.code == 1
    assert str(openheim.home / "config.toml") in ended.error
    assert "OPENHEIM_HOME" in ended.error
    assert list(openheim.home.iterdir()) == []


def test_init_of_an_unknown_provider(openheim: Command) -> None:
    ended = openheim("init", "--provider", "opnai")
    assert ended.code == 2
    assert not (openheim.home / "config.toml").exists()


# --- tools ---


def test_tools_list(openheim: Command) -> None:
    tools = openheim("tools", "list", "--json").json
    names = [tool["function"]["name"] for tool in tools]
    assert names == sorted(names)
    assert {"read_file", "write_file", "edit_file", "list_dir", "search"} <= set(names)
    assert all(tool["type"] == "function" and tool["function"]["parameters"] for tool in tools)
    table = openheim("tools", "list").out
    assert all(name in table for name in names)


NO_COMMANDS = (
    "note: execute_command is left out: commands are switched off; allow_shell = true in the settings switches them on"
)


def test_tools_list_says_how_commands_are_switched_on(openheim: Command, tmp_path: Path) -> None:
    assert openheim("tools", "list").err == f"{NO_COMMANDS}\n"
    assert openheim("tools", "list", "--json").err == ""
    call = ("tools", "call", "execute_command", '{"command": "true"}')
    assert (
        openheim(*call).err == f"Error: there is no tool 'execute_command' here: {NO_COMMANDS.partition('out: ')[2]}\n"
    )
    openheim.configure("allow_shell = true\n")
    listed = openheim("tools", "list")
    assert "execute_command" in listed.out
    assert listed.err == ""
    assert openheim(*call).code == 0

    policy = tmp_path / "policy.toml"
    policy.write_text("allow_shell = false\n")
    managed = {"OPENHEIM_POLICY_FILE": str(policy)}
    assert "the managed policy does not allow commands" in openheim("tools", "list", env=managed).err
    assert "the managed policy does not allow commands" in openheim(*call, env=managed).err

    openheim.configure('allow_shell = true\n[plugins]\ndisable = ["tools.shell"]\n')
    for command in (("tools", "list"), call):
        assert "openheim-tools-shell, which brings commands, is not installed or not in use" in openheim(*command).err


def test_tools_list_in_plan_mode(openheim: Command) -> None:
    openheim.configure("allow_shell = true\n[permissions]\nmode = 'plan'\n")
    listed = openheim("tools", "list")
    names = {tool["function"]["name"] for tool in openheim("tools", "list", "--json").json}
    assert {"read_file", "list_dir", "search", "web_fetch"} <= names
    assert not names & {"write_file", "edit_file", "execute_command"}
    assert {line.split()[0] for line in listed.out.splitlines()[1:]} == names
    assert listed.err.startswith("note: in plan mode only tools that change nothing are offered; left out: ")
    assert "edit_file, execute_command" in listed.err


def test_tools_call(openheim: Command) -> None:
    (openheim.folder / "a.txt").write_text("content\n")
    ended = openheim("tools", "call", "read_file", '{"path": "a.txt"}')
    assert (ended.code, ended.out, ended.err) == (0, "content\n\n", "")
    for arguments, complaint in (
        (["read_file", '{"path": "../x"}'], "outside the work directory"),
        (["read_file", '{"path": 3}'], "path must be string"),
        (["read_file", "[]"], "not a valid JSON object"),
        (["read_fil", "{}"], "there is no tool 'read_fil'"),
    ):
        ended = openheim("tools", "call", *arguments)
        assert (ended.code, ended.out) == (1, "")
        assert complaint in ended.err


def test_tools_call_is_under_the_permissions_of_the_settings(openheim: Command) -> None:
    openheim.configure('[permissions]\ndeny = ["write_file"]\n')
    ended = openheim("tools", "call", "write_file", '{"path": "a", "content": "x"}')
    assert ended.code == 1
    assert "permission denied" in ended.err
    assert not (openheim.folder / "a").exists()


# --- settings that cannot be used ---


@pytest.mark.parametrize("arguments", [["--provider", "demo", "--model", "nosuch"], ["--model", "nosuch"]])
def test_a_model_that_the_provider_does_not_have(openheim: Command, arguments: list[str]) -> None:
    ended = openheim("run", *arguments, "hello")
    assert (ended.code, ended.out) == (2, "")
    assert ended.error == "error: unknown model 'nosuch' of provider 'demo' (there are: demo)"
    assert openheim.history() == []


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ('[providers.x]\napi_base = "https://:8080/v1"\n', "line 2: api_base of provider 'x' names no host"),
        ('[providers.x]\napi_base = "http://[::1"\n', "line 2: api_base of provider 'x' is not of the form"),
        ('[providers.x]\napi_base = "https://h"\napi_key = "k\u00e9y"\n', "that no key has"),
        ('[providers.x]\napi_base = "https://h"\napi_key_file = "~nosuchuser/k"\n', "line 3: api_key_file"),
        ('data_dir = "~nosuchuser/x"\n', "line 1: data_dir: no home folder is known for ~nosuchuser"),
        ("a = " + "[" * 5000 + "]" * 5000 + "\n", "nested too deeply"),
        ('[permissions]\ndeny = [\n  "edit_file(src",\n]\n', "line 2: permissions.deny[0]: cannot read the rule"),
        ('[providers.x]\nkind = "demo"\nflavour = "mint"\n', "line 3: [providers.x] flavour"),
        ("[tools.fs]\n\ndepht = 3\n", "line 3: [tools.fs] depht"),
        ("[gates.ask]\nmode = 3\n", "line 2: [gates.ask] mode"),
    ],
)
def test_settings_that_cannot_be_used_end_a_run_before_it_begins(
    openheim: Command, config: str, complaint: str
) -> None:
    openheim.configure(config)
    ended = openheim("run", "hello")
    assert (ended.code, ended.out) == (2, "")
    assert str(openheim.home / "config.toml") in ended.error
    assert complaint in ended.error
    assert openheim.history() == []


def test_plugins_list_of_a_file_beyond_all_measure(openheim: Command) -> None:
    openheim.configure("a = " + "[" * 5000 + "]" * 5000 + "\n")
    ended = openheim("plugins", "list")
    assert ended.code == 0
    assert "providers" in ended.out
    (warning,) = ended.err.splitlines()
    assert warning.startswith(f"warning: {openheim.home / 'config.toml'}: nested too deeply")
    assert "nested too deeply" in openheim("plugins", "disable", "gates.deny").error


def test_what_an_encoding_lacks_is_replaced(openheim: Command) -> None:
    (openheim.folder / "a.txt").write_text("é\n", encoding="utf-8")
    ended = openheim("tools", "call", "read_file", '{"path": "a.txt"}', env={"PYTHONIOENCODING": "ascii"})
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("?")


def test_without_tools_the_advice_looks_at_what_is_installed(openheim: Command) -> None:
    openheim.configure('[plugins]\ndisable = ["tools.fs", "tools.web"]\n')
    ended = openheim("tools", "list")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.splitlines() == [
        "no toolset that is installed can be used; see openheim plugins list",
        NO_COMMANDS,
    ]


def test_a_page_is_fetched_where_the_settings_and_rules_allow_it(openheim: Command) -> None:
    with ScriptedServer(default=raw("<h1>Inside</h1>", content_type="text/html")) as server:
        call = ("tools", "call", "web_fetch", json.dumps({"url": f"http://localhost:{server.port}/a/../x"}))
        assert "localhost is this machine" in openheim(*call).err
        openheim.configure(f'[tools.web]\nallow_private = ["localhost:{server.port}"]\n')
        assert openheim(*call).out == "# Inside\n"
        openheim.configure(
            f'[tools.web]\nallow_private = ["localhost"]\n'
            f'[permissions]\ndeny = ["web_fetch(http://localhost:{server.port}/x)"]\n'
        )
        assert "permission denied" in openheim(*call).err
        assert [request.path for request in server.requests] == ["/x"]
        openheim.configure("[tools.web]\nallow_privat = []\n")
        assert "[tools.web] allow_privat: unknown key (did you mean allow_private?)" in openheim(*call).err


def test_a_relative_work_dir_counts_from_the_start_directory(openheim: Command) -> None:
    (openheim.folder / "inner").mkdir()
    (openheim.folder / "inner" / "a.txt").write_text("inner")
    (openheim.folder / "b.txt").write_text("outer")
    openheim.configure('work_dir = "."\n')
    ended = openheim("tools", "call", "read_file", '{"path": "../b.txt"}', "--cwd", "inner")
    assert (ended.code, ended.out) == (0, "outer\n")


# --- models ---


def test_models(openheim: Command) -> None:
    openheim.configure(
        'default_provider = "b"\n'
        '[providers.a]\napi_base = "https://a.example/v1"\nmodels = ["m1", "m2"]\n'
        '[providers.b]\napi_base = "https://b.example/v1"\ndefault_model = "m3"\n'
    )
    assert openheim("models", "--json").json == {
        "default_provider": "b",
        "providers": {
            "a": {"default_model": "m1", "models": ["m1", "m2"]},
            "b": {"default_model": "m3", "models": []},
        },
    }
    assert "b (default)  m3" in openheim("models").out


def test_models_takes_a_default_from_the_plugin(openheim: Command) -> None:
    ended = openheim("models", "--json", env={"OPENAI_API_KEY": "sk-canary"})
    assert ended.json == {
        "default_provider": "openai",
        "providers": {"openai": {"default_model": "gpt-4o", "models": []}},
    }
    assert "sk-canary" not in ended.out + ended.err


# --- commands of plugins ---

COMMANDS = """
import typer
from openheim import hookimpl

app = typer.Typer()

@app.command()
def greet(name: str):
    print(f"hello {name}")

class Plugin:
    @hookimpl
    def openheim_commands(self):
        return {"greet": app, "run": app}

plugin = Plugin()
"""

TRANSPORT = """
from openheim import hookimpl

class Once:
    @staticmethod
    def command(prompt: str, shout: bool = False):
        "Answers one prompt."
        return prompt.upper() if shout else prompt

    async def serve(self, runtime, options):
        session = runtime.new_session(provider="demo")
        await session.run(options)
        print("asked:", session.messages[0].text)

class Plugin:
    @hookimpl
    def openheim_create_transport(self, name, settings):
        return Once()

plugin = Plugin()
"""


SETTINGS_OF_TRANSPORT = """
from pydantic import BaseModel

class Settings(BaseModel):
    port: int
"""


def test_wrong_settings_of_a_transport_name_file_and_line(openheim: Command, tmp_path: Path) -> None:
    site = tmp_path / "site"
    text = TRANSPORT.replace(
        "plugin = Plugin()", f"{SETTINGS_OF_TRANSPORT}\nplugin = Plugin()\nplugin.Settings = Settings"
    )
    make_distribution(site, "acme-once", "1", {"openheim.transports": ["once = acme_once:plugin"]}, {"acme_once": text})
    file = openheim.home / "config.toml"
    for config, complaint in (
        (
            '[transports.once]\nport = "many"\nprot = 3\n',
            f"{file}, line 3: [transports.once] prot: unknown key; line 2: port: ",
        ),
        ("\n[transports.once]\n", f"{file}, line 2: [transports.once] port: must be set"),
    ):
        openheim.configure(config)
        ended = openheim("once", "hi", env={"PYTHONPATH": str(site)})
        assert ended.code == 2
        assert complaint in ended.error
    openheim.configure("")
    ended = openheim("once", "hi", env={"PYTHONPATH": str(site), "OPENHEIM_TRANSPORTS__ONCE__PORT": "many"})
    assert "error: OPENHEIM_TRANSPORTS__ONCE__PORT: [transports.once] port: " in ended.error


def test_plugins_may_add_commands_and_transports(openheim: Command, tmp_path: Path) -> None:
    site = tmp_path / "site"
    make_distribution(
        site, "acme-greet", "1", {"openheim.plugins": ["greet = acme_greet:plugin"]}, {"acme_greet": COMMANDS}
    )
    make_distribution(
        site, "acme-once", "1", {"openheim.transports": ["once = acme_once:plugin"]}, {"acme_once": TRANSPORT}
    )
    environment = {"PYTHONPATH": str(site)}
    assert openheim("greet", "you", env=environment).out == "hello you\n"
    assert openheim("once", "--shout", "hi", env=environment).out == "asked: HI\n"
    assert "Answers one prompt." in openheim("once", "--help", env=environment).out
    # A name of openheim's own stays its own.
    assert "hello" not in openheim("run", "--help", env=environment).out
