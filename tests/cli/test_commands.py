"""The other commands, and what all of them share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import LIMIT, Command
from tests.plugins.distributions import make_distribution
from tests.support.openai_server import OpenAIServer
from tests.support.openai_wire import text


def test_version(openheim: Command) -> None:
    from openheim import __version__

    for arguments in (["--version"], ["--debug", "--version"]):
        ended = openheim(*arguments)
        assert (ended.code, ended.out, ended.err) == (0, f"openheim {__version__}\n", "")


def test_help_names_every_command_and_who_brings_the_others(openheim: Command) -> None:
    ended = openheim("--help")
    assert ended.code == 0
    for word in ("run", "init", "plugins", "tools", "models", "doctor", "acp", "openheim-transport-ws", "--log-level"):
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


# --- models, doctor ---


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


def test_doctor_finds_what_works(openheim: Command) -> None:
    with OpenAIServer([text("never")]) as server:
        openheim.use(server)
        ended = openheim("doctor", "--json", env={"OPENAI_API_KEY": "sk-canary"})
    found = {finding["subject"]: finding for finding in ended.json}
    assert ended.code == 0, ended.out
    assert found["keys in the environment"]["detail"] == "OPENAI_API_KEY"
    assert "reached (HTTP 200" in found["provider test"]["detail"]
    assert "sk-canary" not in ended.out + ended.err


def test_doctor_finds_what_does_not(openheim: Command) -> None:
    openheim.configure(
        'max_iteration = 3\n[providers.a]\napi_base = "http://127.0.0.1:9"\n[providers.b]\napi_base = "ftp://b"\n'
    )
    ended = openheim("doctor", "--json")
    problems = {finding["subject"] for finding in ended.json if finding["status"] == "problem"}
    assert ended.code == 1
    assert problems == {"config", "default provider", "provider a", "provider b"}
    openheim.configure("[broken\n")
    assert openheim("doctor").code == 1


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
