"""Links and renamed folders with which one command would let the next one out of its sandbox."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from openheim import ToolError, ToolsContext
from openheim_tools_shell.examination import examine
from openheim_tools_shell.sandbox import abilities
from openheim_tools_shell.settings import Settings
from tests.tools_shell.calls import Shell

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["bwrap", "landlock"])
def kind(request: pytest.FixtureRequest) -> str:
    """One that works here. Where it does not, that it is refused is tested by test_sandbox_choice."""
    found = abilities(network=True)[request.param]
    if not found.works:
        pytest.skip(f"the sandbox {request.param} does not work on this machine: {found.detail}")
    return str(request.param)


@pytest.fixture
def bwrap() -> None:
    found = abilities(network=True)["bwrap"]
    if not found.works:
        pytest.skip(f"bubblewrap does not work on this machine: {found.detail}")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "file").write_text("kept")
    return folder


async def refused(shell: Shell, command: str) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await shell(command)
    return caught.value


# --- writable ---


@pytest.mark.parametrize("target", ["{outside}", "/", "../outside"])
@pytest.mark.parametrize("name", [".venv", "{work}/.venv", "a/../.venv", "a/b", "a/b/c"])
async def test_a_link_of_a_command_makes_nothing_writable(
    kind: str, work: Path, outside: Path, name: str, target: str
) -> None:
    (work / "a").mkdir()
    (outside / "c").mkdir()
    name = name.format(work=work)
    shell = Shell(work, sandbox=kind, writable=(name,))
    link = work / ("a/b" if "b" in name else ".venv")
    target = target.format(outside=outside)
    await shell(f"ln -s '{'../' if target.startswith('..') and link.parent != work else ''}{target}' '{link}'")
    attack = f"echo bad > '{outside}/file'; echo bad > '{outside}/c/new'; echo ran > ran"
    if link.joinpath("c" if name.endswith("c") else "").exists():
        error = await refused(shell, attack)
        assert f"the link {link} leads to " in str(error)
        assert "remove the link" in error.hint
    assert (outside / "file").read_text() == "kept"
    assert os.listdir(outside / "c") == []
    assert not (work / "ran").exists()
    link.unlink()
    await shell("echo ran > ran")


async def test_a_link_from_one_writable_folder_into_another_says_nothing(kind: str, work: Path, outside: Path) -> None:
    (work / "envs").mkdir()
    (work / ".venv").symlink_to("envs")
    shell = Shell(work, sandbox=kind, writable=(".venv", "missing"))
    await shell(f"echo new > .venv/new; ! echo bad > '{outside}/file'")
    assert (work / "envs" / "new").read_text() == "new\n"
    assert (outside / "file").read_text() == "kept"


async def test_a_link_that_commands_cannot_change_is_followed(kind: str, work: Path, outside: Path) -> None:
    (work.parent / "cache").symlink_to(outside)
    await Shell(work, sandbox=kind, writable=(str(work.parent / "cache"),))(f"echo new > '{outside}/file'")
    assert (outside / "file").read_text() == "new\n"


async def test_a_root_in_another_one_that_became_a_link(kind: str, tmp_path: Path, outside: Path) -> None:
    """A command of a session whose other root is around the work directory."""
    work = tmp_path / "around" / "work"
    work.mkdir(parents=True)
    shell = Shell(work, sandbox=kind, data=tmp_path / "data")
    shell.turn.roots = (work, work.parent)
    shell.turn.cwd = work.parent
    await shell("echo new > work/new; mv work moved; ln -s ../outside work")
    assert "leads to" in str(await refused(shell, f"echo bad > '{outside}/file'"))
    assert (outside / "file").read_text() == "kept"


def test_doctor_tells_of_links(kind: str, work: Path, outside: Path) -> None:
    (work / ".venv").symlink_to(outside)
    for setting in ({"writable": (".venv",)}, {"hidden": (".venv",)}):
        context = ToolsContext(work, work.parent / "data", allow_shell=True)
        *_, found = examine(Settings(sandbox=kind, **setting), context)
        assert (found.status, f"the link {work}/.venv leads" in found.detail) == ("problem", True)


# --- hidden ---


@pytest.mark.parametrize("hidden", ["conf/deep/keys", "conf/deep/keys/file", "conf/deep"])
async def test_folders_above_what_is_hidden_cannot_be_renamed(bwrap: None, work: Path, hidden: str) -> None:
    (work / "conf/deep/keys").mkdir(parents=True)
    (work / "conf/deep/keys/file").write_text("words")
    hiding = (hidden, "conf/deep/keys") if hidden == "conf/deep" else (hidden,)
    shell = Shell(work, sandbox="bwrap", hidden=hiding)
    await shell("! mv conf conf2; ! mv conf/deep conf/deep2; ! mv conf/deep/keys conf/keys2; echo new > conf/new")
    assert "words" not in str(await refused(shell, "grep -r words ."))
    assert (work / "conf" / "new").read_text() == "new\n"
    assert (work / "conf/deep/keys/file").read_text() == "words"


async def test_folders_above_openheims_own_cannot_be_renamed(bwrap: None, work: Path) -> None:
    """As where the home folder is the work directory."""
    data = work / ".config" / "openheim"
    data.mkdir(parents=True)
    (data / ".env").write_text("words")
    shell = Shell(work, sandbox="bwrap", data=data)
    await shell("! mv .config c2; ! mv .config/openheim c2")
    assert "words" not in str(await refused(shell, "grep -r words ."))


async def test_what_lies_above_and_is_not_the_commands_stays_so(bwrap: None, work: Path, outside: Path) -> None:
    (outside / "deep").mkdir()
    (outside / "deep" / "key").write_text("words")
    (work / "a" / "b").mkdir(parents=True)
    (work / "a" / "key").write_text("words")
    shell = Shell(work, sandbox="bwrap", hidden=(f"{outside}/deep/key", "a", "a/b", "a/key"))
    await shell(f"! echo bad > '{outside}/new'; ! echo bad > '{outside}/deep/new'; ! echo bad > a/b/new")
    assert "words" not in str(await refused(shell, f"grep -r words . '{outside}'"))
    assert sorted(os.listdir(outside)) == ["deep", "file"]


async def test_a_work_dir_that_is_the_folder_for_temporary_files(bwrap: None, outside: Path, tmp_path: Path) -> None:
    if not outside.is_relative_to("/tmp"):
        pytest.skip("this test's folder is not in /tmp")
    shell = Shell(Path("/tmp"), sandbox="bwrap", hidden=(f"{outside}/file",), data=tmp_path / "data")
    assert "kept" not in str(await refused(shell, f"ls '{outside}' && cat '{outside}/file'"))


@pytest.mark.parametrize("target", ["conf/file", "../outside/file"])
async def test_a_link_of_the_commands_own_hides_nothing(kind: str, work: Path, outside: Path, target: str) -> None:
    (work / "conf").mkdir()
    (work / "conf" / "file").write_text("words")
    (work / ".env").symlink_to(target)
    error = await refused(Shell(work, sandbox=kind, hidden=(".env",)), "rm .env")
    real = f"{work}/{target}" if target.startswith("conf") else f"{outside}/file"
    if kind == "bwrap" or target.startswith(".."):
        assert f"the settings hide {work}/.env, which the link {work}/.env leads to {real}" in str(error)
        assert real in error.hint
    assert (work / ".env").is_symlink()


async def test_after_what_was_hidden_is_gone_nothing_runs(bwrap: None, work: Path) -> None:
    (work / "conf").mkdir()
    (work / "conf" / "key").write_text("words")
    shell = Shell(work, sandbox="bwrap", hidden=("conf/key", "missing"))
    await shell("true")
    (work / "conf").rename(work / "moved")
    error = await refused(shell, "cat moved/key")
    assert f"{work}/conf/key was hidden from the commands of this session and is not there any more" in str(error)
    assert "put it back" in error.hint
    (work / "moved").rename(work / "conf")
    assert await shell("echo ran") == "ran\n"
    (work / "conf" / "key").unlink()
    await shell.tools["execute_command"].close_session(shell.turn.session_id)  # type: ignore[attr-defined]
    assert await shell("echo ran") == "ran\n"
