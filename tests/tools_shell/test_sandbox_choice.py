"""Which sandbox is used, and that commands are refused where the one that is asked for does not work."""

from __future__ import annotations

import errno
import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openheim import Finding, ToolError, ToolsContext
from openheim_tools_shell.examination import examine
from openheim_tools_shell.private import PrivateFolders
from openheim_tools_shell.sandbox import bwrap, choose, landlock, landlock_launcher
from openheim_tools_shell.sandbox.trial import fault_of
from openheim_tools_shell.settings import Settings
from tests.cli.command import Command
from tests.tools_shell.calls import Shell

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def tried_anew() -> Iterator[None]:
    """What was found out about this machine is forgotten, before and after it is made another one."""
    caches = (bwrap.tried, bwrap.find_bwrap, landlock.tried)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.fixture
def no_bwrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bwrap, "find_bwrap", lambda writable=(): None)


@pytest.fixture
def no_landlock(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> int:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(landlock_launcher, "version", fail)


async def refused(work: Path, **settings: Any) -> str:
    with pytest.raises(ToolError) as caught:
        await Shell(work, **settings)("touch ran")
    assert not (work / "ran").exists()
    return str(caught.value)


# --- asked for and not there: refused ---


async def test_bwrap_that_is_not_installed(work: Path, no_bwrap: None) -> None:
    said = await refused(work, sandbox="bwrap")
    assert "the sandbox bwrap that the settings ask for cannot be used" in said
    assert "bwrap is not installed (package bubblewrap)" in said
    assert "openheim doctor" in said


async def test_bwrap_that_does_not_work(work: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(bwrap, "find_bwrap", lambda writable=(): str(broken))
    assert "a trial failed: bwrap: setting up uid map: Permission denied" in await refused(work, sandbox="bwrap")
    # That it broke later, between the trial and the command, runs nothing either.
    monkeypatch.setattr(bwrap, "why_not", lambda program, network: "")
    assert "could not be started" in await refused(work, sandbox="bwrap")


async def test_landlock_that_is_not_there(work: Path, no_landlock: None) -> None:
    assert "this kernel has none, or it is switched off" in await refused(work, sandbox="landlock")


async def test_landlock_that_is_too_old(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock_launcher, "version", lambda: 2)
    said = await refused(work, sandbox="landlock")
    assert "version 2 does not keep files from being cut short; Linux 6.2 does" in said


async def test_rules_that_cannot_be_made_run_nothing(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The launcher finds out by itself, whatever was found before."""
    monkeypatch.setattr(landlock, "why_not", lambda: "")
    monkeypatch.setattr(landlock, "prefix", lambda layout: (*landlock._launcher(), "--write", "/no/such/folder", "--"))
    said = await refused(work, sandbox="landlock")
    assert "exit status 125" in said
    assert "the sandbox could not be set up, so the command was not run" in said


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"sandbox": "landlock"}, "cannot take the network away"),
        ({"sandbox": "none"}, "needs a sandbox"),
        ({"sandbox": "auto"}, "needs bubblewrap: bwrap is not installed"),
        ({"sandbox": "bwrap"}, "needs bubblewrap: bwrap is not installed"),
    ],
)
async def test_a_network_is_never_left_to_commands_that_are_to_have_none(
    work: Path, no_bwrap: None, settings: dict[str, Any], said: str
) -> None:
    text = await refused(work, network=False, **settings)
    assert said in text or ("landlock" in settings.values() and "this kernel" in text)
    assert "bwrap" in text
    assert "network = true" in text


@pytest.mark.parametrize(
    "path", [".", "project", "{tmp}/project", "{tmp}/project/.venv/bin", "{tmp}/other:{tmp}/project"]
)
def test_a_program_that_is_found_in_the_current_directory_is_not_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, path: str
) -> None:
    for folder in (".", "project", "project/.venv/bin", "elsewhere"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "bwrap").write_text("#!/bin/sh\n")
        (tmp_path / folder / "bwrap").chmod(0o755)
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("PATH", path.format(tmp=tmp_path))
    assert bwrap.find_bwrap() is None
    # Nor is what comes later: the first search counts.
    monkeypatch.setenv("PATH", f"{path.format(tmp=tmp_path)}:{tmp_path}/elsewhere")
    assert bwrap.find_bwrap() is None
    bwrap.find_bwrap.cache_clear()
    assert bwrap.find_bwrap() == str(tmp_path / "elsewhere" / "bwrap")


@pytest.mark.parametrize(
    "path", ["{work}/.venv/bin", "{work}/link/bin", "{tmp}/way/.venv/bin", "{tmp}/linked", "{more}"]
)
async def test_a_program_that_a_command_could_have_written_is_not_taken(
    work: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, path: str
) -> None:
    """openheim runs elsewhere, and PATH leads to where commands can write, or by a link of theirs to somewhere else."""
    if landlock.why_not():
        pytest.skip(reason="Landlock does not work here, and without a sandbox a command needs no way out")
    monkeypatch.setattr(bwrap, "_SYSTEM_PATH", ())
    for folder in ("work/.venv/bin", "more", "linked", "other/bin"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / "way").symlink_to(work)
    (work / "link").symlink_to("../other")
    (tmp_path / "linked" / "bwrap").symlink_to(work / "bwrap")
    path = path.format(work=work, tmp=tmp_path, more=tmp_path / "more")
    monkeypatch.setenv("PATH", path)
    shell = Shell(work, sandbox="auto", writable=(str(tmp_path / "more"),))
    shell.turn.env = {**shell.turn.env, "PATH": os.defpath}
    await shell("echo ran")
    for program in (work / "bwrap", Path(path, "bwrap")):
        program.write_text(f"#!/bin/sh\necho bad > '{tmp_path}/escaped'\n")
        program.chmod(0o755)
    bwrap.find_bwrap.cache_clear()  # As in the next process.
    assert await shell("echo ran") == "ran\n"
    assert not (tmp_path / "escaped").exists()
    found = {finding.subject: finding for finding in examine(Settings(), ToolsContext(work, tmp_path / "data"))}
    if path != str(tmp_path / "more"):
        assert "not installed" in found["sandbox bwrap"].detail


# --- auto ---


def test_the_best_that_works_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = (("", "", "bwrap"), ("", "x", "bwrap"), ("x", "", "landlock"), ("x", "x", "none"))
    for no_bwrap, no_landlock, kind in cases:
        monkeypatch.setattr(bwrap, "why_not", lambda program, network, reason=no_bwrap: reason)
        monkeypatch.setattr(landlock, "why_not", lambda reason=no_landlock: reason)
        taken, notice = choose("auto", network=True)
        assert taken == kind
        assert bool(notice) is (kind == "none")


async def test_where_none_works_commands_run_and_watchers_are_told_once(
    work: Path, no_bwrap: None, no_landlock: None
) -> None:
    shell = Shell(work, sandbox="auto")
    assert await shell("echo one") == "one\n"
    assert await shell("echo two") == "two\n"
    (told,) = shell.turn.progress_texts
    assert told.startswith("commands run without a sandbox: none works here (bwrap: bwrap is not installed")
    assert not (work.parent / "data").exists()


async def test_without_a_sandbox_nothing_is_tried(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "openheim_tools_shell.sandbox.choice.abilities", lambda network, writable: pytest.fail("it was tried")
    )
    assert await Shell(work, sandbox="none")("echo one") == "one\n"


# --- what doctor says ---


def findings(work_dir: Path = Path("/no/such"), *, allowed: bool = True, **settings: Any) -> dict[str, Finding]:
    context = ToolsContext(work_dir, Path("/no/data"), allow_shell=allowed, private_paths=(work_dir / ".openheim",))
    return {finding.subject: finding for finding in examine(Settings(**settings), context)}


def outcome(*, allowed: bool = True, **settings: Any) -> tuple[str, str]:
    *_, found = findings(allowed=allowed, **settings).values()
    assert found.subject == "shell commands"
    return found.status, found.detail


def test_doctor_tells_what_commands_get(no_bwrap: None, no_landlock: None) -> None:
    sandboxes = findings()
    assert sandboxes["sandbox bwrap"].status == "note"
    assert "not installed" in sandboxes["sandbox bwrap"].detail
    assert "switched off" in sandboxes["sandbox landlock"].detail
    status, detail = outcome()
    assert (status, "run without a sandbox: none works here" in detail) == ("note", True)
    status, detail = outcome(sandbox="bwrap")
    assert (status, detail.startswith('refused, with sandbox = "bwrap": ')) == ("problem", True)
    assert outcome(network=False)[0] == "problem"
    status, detail = outcome(sandbox="bwrap", allowed=False)
    assert (status, detail.startswith("off (allow_shell = false); once allowed: refused")) == ("note", True)
    assert outcome(sandbox="none") == ("note", 'they run without a sandbox, with sandbox = "none"')


def test_doctor_tells_what_landlock_cannot_protect(work: Path, no_bwrap: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "why_not", lambda: "")
    monkeypatch.setattr(sys, "prefix", str(work / ".venv"))
    assert set(findings(work)) == {"sandbox bwrap", "sandbox landlock", "shell commands"}
    for name in (".venv", ".openheim", ".env"):
        (work / name).mkdir()
    found = findings(work)
    assert f"commands can change {work}/.venv" in found["openheim itself"].detail
    assert found["private files"].detail == f"commands can read and change {work}/.openheim"
    assert found["shell commands"].status == "ok"
    refused = findings(work, hidden=[".env"])["shell commands"]
    assert (refused.status, f"the settings hide {work}/.env" in refused.detail) == ("problem", True)


def test_trials_get_nothing_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "canary")
    said = fault_of(["/bin/sh", "-c", "env >&2; exit 1"])
    assert "PATH=" in said
    assert "canary" not in said


def test_doctor_as_a_command(work: Path, own_environment: Path, tmp_path: Path) -> None:
    openheim = Command(work, own_environment)
    openheim.configure('allow_shell = true\n[tools.shell]\nsandbox = "bwrap"\n')
    ended = openheim("doctor", "--offline", "--json", env={"PATH": str(tmp_path)})
    assert ended.code == 1
    found = {finding["subject"]: finding for finding in ended.json}
    assert found["sandbox bwrap"]["detail"].startswith("bwrap is not installed")
    assert found["shell commands"]["status"] == "problem"
    assert set(found["sandbox landlock"]) == {"subject", "status", "detail"}
    assert "execute_command" in found["tools"]["detail"]


# --- private folders ---


def test_what_a_killed_process_left_is_removed_and_what_is_used_is_not(tmp_path: Path) -> None:
    base = tmp_path / "shell"
    one = PrivateFolders(base)
    used = one.of_session("1")
    assert one.of_session("1") == used
    left = base / "left"
    (left / "tmp").mkdir(parents=True)
    (left / "tmp" / "file").write_text("x")
    (base / "link").symlink_to(tmp_path)
    two = PrivateFolders(base)
    other = two.of_session("1")
    assert other != used
    assert used.is_dir()
    assert not left.exists()
    one.remove("1")
    one.remove("1")
    assert not used.exists()
    assert (base / "link").is_symlink()
    del two
    assert not other.exists()


def test_a_folder_that_cannot_be_made_is_an_error_of_the_call(tmp_path: Path) -> None:
    (tmp_path / "shell").write_text("in the way")
    with pytest.raises(ToolError, match="no private folder for commands can be made"):
        PrivateFolders(tmp_path / "shell").of_session("1")


def test_a_process_that_keeps_the_gate_locked_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openheim_tools_shell.private.GATE_SECS", 0.05)
    folders = PrivateFolders(tmp_path)
    with (tmp_path / "lock").open("w") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        with pytest.raises(ToolError, match=r"another process keeps .*lock locked") as caught:
            folders.of_session("1")
    assert "continue it, or end it" in caught.value.hint
    assert folders.of_session("1").is_dir()


def test_deep_trees_and_folders_without_rights_are_removed(tmp_path: Path) -> None:
    base = tmp_path / "shell"
    folders = PrivateFolders(base)
    place = folders.of_session("1")
    (place / "closed").mkdir()
    (place / "closed" / "inner").mkdir()
    (place / "closed").chmod(0)
    deep = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(3_000):
        os.mkdir("d", dir_fd=deep)
        inner = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=deep)
        os.close(deep)
        deep = inner
    os.close(deep)
    folders.remove("1")
    assert [path.name for path in base.iterdir()] == ["lock"]
