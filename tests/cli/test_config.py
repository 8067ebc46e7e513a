"""``openheim config``, and whether a project is trusted, in real processes."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import LIMIT, Command, Ended

CANARIES = """
default_provider = "x"
[providers.x]
default_model = "m"
api_base = "https://u:canary@h/v1"
api_key = "canary"
extra_headers = { Authorization = "canary" }
[http]
proxy = "http://u:canary@h"
[mcp_servers.m]
command = "c"
args = ["canary"]
env = { A = "canary" }
[mcp_servers.n]
url = "https://u:canary@h/?canary"
headers = { A = "canary" }
"""


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def project(openheim: Command) -> Path:
    """A repository with settings and skills of its own; the command runs in a folder of it."""
    root = openheim.folder
    (root / ".git").mkdir()
    put(root / ".openheim/config.toml", "# shared\nmax_iterations = 3\ndata_dir = '/elsewhere'\n")
    put(root / ".openheim/skills/review.md", "# How we review\n")
    openheim.folder = root / "below"
    openheim.folder.mkdir()
    return root


def shown(openheim: Command, *arguments: str, **options: Any) -> dict[str, Any]:
    ended = openheim("config", "show", "--json", *arguments, **options)
    assert ended.code == 0, ended.err
    values: dict[str, Any] = ended.json["values"]
    return values


# --- show ---


def test_show_names_the_layer_of_each_value(openheim: Command, project: Path, tmp_path: Path) -> None:
    openheim.configure("allow_shell = true\n\n[permissions]\nmode = 'plan'\n")
    policy = put(tmp_path / "policy.toml", "[tui]\ntheme_color = 'red'\n")
    local = put(project / ".openheim/config.local.toml", "default_skills = ['review']\n")
    environment = {"OPENHEIM_POLICY_FILE": str(policy), "OPENHEIM_MEMORY__TOP_K": "7"}
    values = shown(openheim, "--trust", env=environment)

    def entry(key: str) -> tuple[Any, ...]:
        assert set(values[key]) == {"value", "layer", "file", "line"}
        return tuple(values[key].values())

    config = str(openheim.home / "config.toml")
    assert entry("allow_shell") == (True, "user", config, 1)
    assert entry("permissions.mode") == ("plan", "user", config, 4)
    assert entry("max_iterations") == (3, "project", str(project / ".openheim/config.toml"), 2)
    assert entry("default_skills") == (["review"], "local", str(local), 1)
    assert entry("memory.top_k") == (7, "environment", None, None)
    assert entry("tui.theme_color") == ("red", "policy", str(policy), 2)
    assert entry("permissions.gate") == ("ask", "default", None, None)
    assert entry("work_dir") == (None, "default", None, None)
    # What a project may not set is not in force.
    assert entry("data_dir") == (None, "default", None, None)

    lines = openheim("config", "show", "--trust", env=environment).out.splitlines()
    assert lines[0].split() == ["SETTING", "VALUE", "LAYER", "WHERE"]
    assert ["permissions.mode", '"plan"', "user", f"{config}:4"] in [line.split() for line in lines]


def test_show_has_the_warnings_in_json_and_on_stderr(openheim: Command) -> None:
    openheim.configure("max_iteration = 3\n")
    ended = openheim("config", "show", "--json")
    (warning,) = ended.json["warnings"]
    assert warning == {
        "file": str(openheim.home / "config.toml"),
        "line": 1,
        "key": "max_iteration",
        "message": "unknown setting max_iteration is ignored",
        "hint": "did you mean max_iterations?",
    }
    assert "did you mean max_iterations?" in ended.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["config", "show"],
        ["config", "show", "--json"],
        ["config", "check"],
        ["config", "check", "--json"],
        ["--log-level", "debug", "config", "show"],
        ["--log-level", "debug", "--debug", "tools", "list"],
        ["--log-level", "debug", "--debug", "run", "--timeout", "0.1", "hi"],
        ["models", "--json"],
        ["doctor", "--offline", "--json"],
        ["config", "set", "max_iterations", "3"],
        ["config", "set", "max_iterations", "canary"],
    ],
)
def test_no_command_shows_a_secret(openheim: Command, arguments: list[str]) -> None:
    openheim.configure(CANARIES)
    given = "canary" in arguments
    ended = openheim(*arguments)
    assert ended.out + ended.err
    assert given or "Traceback" not in ended.err
    assert "canary" not in ended.out + ended.err


# --- check ---


def test_check_finds_all_that_is_wrong(openheim: Command, tmp_path: Path) -> None:
    openheim.configure(
        "\n".join(
            (
                "default_provider = 'none'",
                "work_dir = 'missing'",
                "[providers.a]",
                "api_base = 'ftp://h'",
                "models = ['m']",
                "default_model = 'n'",
                "fallback = ['gone/m']",
                "[providers.b]",
                "api_base = 'http://h'",
                "api_key = 'canary'",
                "[permissions]",
                "deny = ['(']",
                "gate = 'none'",
                "[tools.fs]",
                "limits = 3",
                "[providers.c]",
                "api_base = 'https://h'",
                "env_var = 'UNSET_VARIABLE'",
                "[tools.absent]",
                "x = 1",
                "",
            )
        )
    )
    ended = openheim("config", "check", "--json")
    assert ended.code == 1
    found = ended.json
    assert found["ok"] is False
    assert sorted((error["line"], error["key"]) for error in found["errors"]) == [
        (1, "default_provider"),
        (2, "work_dir"),
        (4, "providers.a.api_base"),
        (6, "providers.a.default_model"),
        (7, "providers.a.fallback"),
        (10, "providers.b.api_key"),
        (12, "permissions.deny"),
        (13, "permissions.gate"),
        (15, "tools.fs.limits"),
    ]
    for error in found["errors"]:
        assert set(error) == {"file", "line", "key", "message", "hint"}
        assert error["file"] == str(openheim.home / "config.toml")
        assert error["message"] and error["hint"]
    warnings = " ".join(f"{warning['message']} {warning['hint']}" for warning in found["warnings"])
    assert "UNSET_VARIABLE" in warnings
    assert "'absent'" in warnings
    assert f"chmod 600 {openheim.home / 'config.toml'}" in warnings

    lines = openheim("config", "check").out.splitlines()
    assert sum(line.startswith("error: ") for line in lines) == len(found["errors"])
    assert f"error: {openheim.home / 'config.toml'}, line 2: " in "\n".join(lines)


def test_check_names_rules_about_no_path(openheim: Command) -> None:
    openheim.configure(
        '[permissions]\ndeny = ["read_file(/etc/*)", "*_file(~/x)", "search(../a)", "read_file(./a)", "*(/a)"]\n'
    )
    warnings = openheim("config", "check", "--json").json["warnings"]
    assert [one["message"] for one in warnings] == [
        f"permissions.deny[{index}]: no path is spelled like this" for index in (0, 1, 2)
    ]
    assert warnings[0]["hint"] == "write it relative to the work directory, without .."


def test_check_names_rules_about_no_tool(openheim: Command) -> None:
    openheim.configure(
        "[permissions]\n"
        'allow = ["read_file(src/**)", "*_file", "execute_command(ls *)", "job_*"]\n'
        'deny = ["edit_fil(src/**)", "search", "github_*", "?dit_file"]\n'
    )
    for command in (["config", "check"], ["config", "check", "--json"]):
        ended = openheim(*command)
        assert (ended.code, ended.err) == (0, "")
        assert "is fine" not in ended.out
    assert [(one["line"], one["key"], one["message"], one["hint"]) for one in ended.json["warnings"]] == [
        (3, "permissions.deny", "permissions.deny[0]: no tool is called edit_fil", "did you mean edit_file?"),
        (
            3,
            "permissions.deny",
            "permissions.deny[2]: no tool is called github_*",
            "it counts once a plugin or an MCP server brings such a tool",
        ),
    ]
    # They hold up nothing.
    assert openheim("tools", "call", "list_dir").code == 0


def test_check_of_values_that_do_not_load(openheim: Command) -> None:
    openheim.configure("max_iterations = 0\n[permissions]\nmode = 'fast'\n")
    ended = openheim("config", "check", "--json")
    assert ended.code == 1
    assert [(error["line"], error["key"]) for error in ended.json["errors"]] == [
        (1, "max_iterations"),
        (3, "permissions.mode"),
    ]
    # Other commands name the first.
    other = openheim("config", "show")
    assert other.code == 2
    assert "line 1: max_iterations must be at least 1" in other.error
    openheim.configure("[broken\n")
    assert openheim("config", "check", "--json").json["errors"][0]["line"] == 1


def test_check_of_settings_that_are_fine(openheim: Command) -> None:
    assert openheim("config", "check", "--json").json == {"ok": True, "errors": [], "warnings": []}
    assert openheim("init", "--provider", "demo").code == 0
    ended = openheim("config", "check")
    assert (ended.code, ended.out) == (0, f"{openheim.home / 'config.toml'} is fine\n")


def test_another_config_file(openheim: Command, tmp_path: Path) -> None:
    other = put(tmp_path / "other.toml", "max_iterations = 4\n")
    assert shown(openheim, "--config", str(other))["max_iterations"]["value"] == 4
    assert openheim("--config", str(other), "config", "path").out == f"{other}\n"
    assert openheim("--config", str(other), "config", "set", "max_iterations", "5").code == 0
    assert other.read_text() == "max_iterations = 5\n"
    ended = openheim("--config", str(tmp_path / "none.toml"), "config", "check")
    assert ended.code == 2
    assert "there is no config file" in ended.error


# --- path, set ---


def test_path(openheim: Command, project: Path) -> None:
    for options, file in (
        ([], openheim.home / "config.toml"),
        (["--project"], project / ".openheim/config.toml"),
        (["--local"], project / ".openheim/config.local.toml"),
    ):
        assert openheim("config", "path", *options).out == f"{file}\n"
    assert "cannot stand together" in openheim("config", "path", "--project", "--local").error


def test_set_writes_where_it_is_told_to(openheim: Command, project: Path) -> None:
    ended = openheim("config", "set", "max_iterations", "5")
    assert ended.code == 0
    assert ended.out == f"max_iterations is set in {openheim.home / 'config.toml'}\n"
    again = openheim("config", "set", "max_iterations", "5")
    assert again.out == f"max_iterations is set so already in {openheim.home / 'config.toml'}\n"
    assert openheim("config", "set", "--local", "allow_shell", "true").code == 0
    assert (project / ".openheim/config.local.toml").read_text() == "allow_shell = true\n"
    assert openheim("config", "set", "--project", "max_iterations", "7").code == 0
    assert (project / ".openheim/config.toml").read_text() == (
        "# shared\nmax_iterations = 7\ndata_dir = '/elsewhere'\n"
    )
    refused = openheim("config", "set", "--project", "http.proxy", "http://evil.example")
    assert refused.code == 2
    assert "http cannot be set by a project" in refused.error


def test_set_says_when_it_has_no_effect(openheim: Command, project: Path) -> None:
    ended = openheim("config", "set", "max_iterations", "5", env={"OPENHEIM_MAX_ITERATIONS": "6"})
    assert "warning: max_iterations has no effect here, since the environment sets it too" in ended.err
    ended = openheim("config", "set", "--project", "allow_shell", "true")
    assert "is not trusted" in ended.err
    openheim("config", "trust")
    ended = openheim("config", "set", "max_iterations", "9")
    assert f"since {project / '.openheim/config.toml'} sets it too" in ended.err


def test_set_reads_a_secret_from_standard_input(openheim: Command) -> None:
    ended = openheim("config", "set", "providers.x.api_key", "-", stdin="sk-canary\n")
    assert (ended.code, "canary" in ended.out + ended.err) == (0, False)
    assert (openheim.home / "config.toml").read_text() == '[providers.x]\napi_key = "sk-canary"\n'
    (openheim.home / "config.toml").chmod(0o644)
    ended = openheim("config", "set", "providers.x.default_model", "m")
    assert "others may read it" in ended.err


def test_set_of_a_slip_changes_nothing(openheim: Command) -> None:
    openheim.configure("# mine\n")
    for key, value, complaint in (
        ("max_iteration", "3", "did you mean max_iterations?"),
        ("max_iterations", "0", "at least 1"),
        ("permissions.mode", "fast", "must be one of"),
        ("", "3", "names no setting"),
    ):
        ended = openheim("config", "set", key, value)
        assert ended.code == 2
        assert complaint in ended.error
    assert (openheim.home / "config.toml").read_text() == "# mine\n"


def test_set_says_what_will_fail(openheim: Command) -> None:
    for key, value, complaint in (
        ("default_provider", "nope", "default_provider names unknown provider 'nope'"),
        ("tools.fs.colour", "1", "colour"),
        ("providers.x.kind", "nosuch", "nosuch"),
    ):
        ended = openheim("config", "set", key, value)
        assert ended.code == 0
        (line,) = [line for line in ended.err.splitlines() if line.startswith("warning: ")]
        assert complaint in line
    assert openheim("config", "set", "max_iterations", "3").err == ""


# --- the managed policy ---


def test_a_policy_holds_for_plugins_whatever_variables_say(openheim: Command, tmp_path: Path) -> None:
    policy = put(tmp_path / "policy.toml", "[plugins]\ndisable = ['tools.fs']\n")
    environment = {"OPENHEIM_POLICY_FILE": str(policy), "OPENHEIM_PLUGINS_DISABLE": ""}
    (row,) = openheim("plugins", "show", "tools.fs", "--json", env=environment).json
    assert (row["status"], row["note"]) == ("disabled", "switched off by the managed policy")
    rows = openheim("plugins", "list", "--json", env=environment | {"OPENHEIM_PLUGINS": "openheim-tools-fs"}).json
    assert {row["status"] for row in rows if row["name"] == "fs"} == {"disabled"}
    # Nor does a file of the user's that cannot be read.
    openheim.configure("[plugins\n")
    (row,) = openheim("plugins", "show", "tools.fs", "--json", env=environment).json
    assert row["status"] == "disabled"
    openheim.configure("")
    policy.write_text("[plugins]\nenable = ['openheim-core']\n")
    rows = openheim("plugins", "list", "--json", env=environment | {"OPENHEIM_PLUGINS": "openheim-tools-fs"}).json
    assert {row["distribution"] for row in rows if row["status"] == "available"} == {"openheim-core"}


def test_a_policy_that_is_wrong_stops_everything(openheim: Command, tmp_path: Path) -> None:
    policy = put(tmp_path / "policy.toml", "allow_shell = 'no'\n")
    ended = openheim("run", "--provider", "demo", "hello", env={"OPENHEIM_POLICY_FILE": str(policy)})
    assert ended.code == 2
    assert f"{policy}, line 1: allow_shell must be boolean" in ended.error


# --- trust ---


def test_an_untrusted_project_is_ignored_with_a_notice(openheim: Command, project: Path) -> None:
    ended = openheim("config", "show", "--json")
    assert ended.json["values"]["max_iterations"]["value"] == 10
    assert [line for line in ended.err.splitlines() if line.startswith("note: ")] == [
        f"note: the settings and skills in {project}/.openheim are ignored, since that folder is not trusted "
        f"(openheim config trust {project}, or --trust for one run)"
    ]
    assert shown(openheim, "--trust")["max_iterations"]["value"] == 3
    assert shown(openheim)["max_iterations"]["value"] == 10


def test_nothing_is_no_folder_to_trust(openheim: Command, project: Path) -> None:
    for command in ("trust", "untrust"):
        ended = openheim("config", command, "")
        assert (ended.code, "DIR is empty" in ended.error) == (2, True)
    assert not (openheim.home / "trust.json").exists()


def test_trust_and_untrust(openheim: Command, project: Path) -> None:
    assert openheim("config", "trust").out == f"{project} is trusted\n"
    ended = openheim("config", "show", "--json")
    assert ended.json["values"]["max_iterations"]["value"] == 3
    assert [warning["key"] for warning in ended.json["warnings"]] == ["data_dir"]
    assert json.loads((openheim.home / "trust.json").read_text())["folders"][str(project)]["trusted"] is True
    assert openheim("config", "untrust", str(project), cwd=openheim.home).out == f"{project} is not trusted\n"
    assert shown(openheim)["max_iterations"]["value"] == 10
    assert "there is no folder" in openheim("config", "trust", "nowhere").error


PROGRAM = "from openheim.cli.trusting import trust_for; print('answer:', trust_for(None))"


def on_a_terminal(openheim: Command, answer: bytes | None) -> Ended:
    """What ``trust_for`` says and returns on a terminal, where somebody types ``answer`` (None: hangs up)."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        cwd=openheim.folder,
        env=openheim.environment,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    said = b""
    deadline = time.monotonic() + LIMIT
    while True:
        ready, _, _ = select.select([ours], [], [], max(0, deadline - time.monotonic()))
        assert ready, "it neither asked nor ended"
        try:
            chunk = os.read(ours, 4096)
        except OSError:
            break  # The other end of a terminal that is gone.
        if not chunk:
            break
        said += chunk
        if said.endswith(b"[y/N] ") and answer is not None:
            os.write(ours, answer)
            answer = None
    out, _ = process.communicate(timeout=LIMIT)
    os.close(ours)
    return Ended(process.returncode, out.decode(), said.decode())


def test_a_terminal_is_asked_once(openheim: Command, project: Path) -> None:
    asked = on_a_terminal(openheim, b"y\n")
    assert asked.out == "answer: True\n"
    for word in (str(project), "max_iterations", "data_dir", "review", "Trust this folder? [y/N]"):
        assert word in asked.err
    again = on_a_terminal(openheim, None)
    assert (again.out, again.err) == ("answer: None\n", "")
    assert shown(openheim)["max_iterations"]["value"] == 3


@pytest.mark.parametrize("answer", [b"n\n", b"\n", b"what?\n"])
def test_anything_but_yes_is_no(openheim: Command, project: Path, answer: bytes) -> None:
    assert on_a_terminal(openheim, answer).out == "answer: False\n"
    assert on_a_terminal(openheim, None).out == "answer: None\n"
    assert shown(openheim)["max_iterations"]["value"] == 10


def test_no_answer_decides_nothing(openheim: Command, project: Path) -> None:
    # End of input, as Ctrl+D gives it.
    assert on_a_terminal(openheim, b"\x04").out == "answer: False\n"
    assert not (openheim.home / "trust.json").exists()


def test_nobody_is_asked_without_a_terminal_or_without_need(openheim: Command, project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=openheim.folder,
        env=openheim.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("answer: None\n", "")
    (project / ".openheim/config.toml").unlink()
    (project / ".openheim/skills/review.md").unlink()
    (project / ".openheim/skills").rmdir()
    assert on_a_terminal(openheim, None).out == "answer: None\n"


# --- what starting costs ---


@pytest.mark.parametrize("command", [["skills", "list"], ["config", "show"], ["config", "path"]])
def test_settings_are_loaded_without_heavy_libraries(openheim: Command, project: Path, command: list[str]) -> None:
    openheim.configure('[providers.x]\napi_base = "https://h"\napi_key = { keyring = "x" }\n')
    openheim("config", "trust")
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "openheim", *command],
        cwd=openheim.folder,
        env=openheim.environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=True,
    )
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "openheim" in imported
    assert not {"pydantic", "tomlkit", "keyring", "sqlite3", "anyio", "httpx", "stevedore"} & imported
