"""What a sandbox keeps from commands, and what it leaves to them: real processes, judged by what is there after."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from openheim import ToolError
from openheim_tools_shell.sandbox import abilities, landlock
from tests.tools_shell.calls import Ready, Shell, wait_until_gone
from tests.tools_shell.test_endings import cancelled, openheim_ended, seen, started, timed_out

pytestmark = pytest.mark.anyio

KINDS = ("bwrap", "landlock")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """One that works here. Where it does not, that it is refused is tested by test_sandbox_choice."""
    found = abilities(network=True)[request.param]
    if not found.works:
        pytest.skip(f"the sandbox {request.param} does not work on this machine: {found.detail}")
    return str(request.param)


@pytest.fixture
def bwrap() -> None:
    found = abilities(network=False)["bwrap"]
    if not found.works:
        pytest.skip(f"bubblewrap does not work on this machine: {found.detail}")


@pytest.fixture
def confined(work: Path, kind: str) -> Iterator[Shell]:
    shell = Shell(work, sandbox=kind)
    yield shell
    assert wait_until_gone(shell.mark) == []


@pytest.fixture(params=["home", "tmp"])
def outside(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A folder that is none of the command's, in the user's home and in /tmp."""
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    base = home if request.param == "home" and os.access(home, os.W_OK) else tmp_path
    folder = Path(tempfile.mkdtemp(dir=base, prefix="openheim-test-"))
    yield folder
    shutil.rmtree(folder)


async def refused(shell: Shell, command: str, **arguments: Any) -> str:
    with pytest.raises(ToolError) as caught:
        await shell(command, **arguments)
    return str(caught.value)


def tree(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


# --- files ---


ATTACKS = """
cd "$W"
ln -s "$O" link;                 echo bad > link/new;          echo bad > link/file
ln "$O/file" hard;               [ -e hard ] && echo bad > hard
echo bad > "$O/new2";            echo bad >> "$O/file";        : > "$O/file"
rm -f "$O/file";                 mv "$O/file" stolen;          mv "$O/folder" stolen-folder
mkdir "$O/made";                 touch "$O/folder/touched";    rmdir "$O/empty"
echo mine > own;                 mv own "$O/moved";            ln own "$O/linked";   ln -s own "$O/symlinked"
mkfifo "$O/pipe";                truncate -s 0 "$O/file";      cp /bin/true "$O/copied"
for root in /proc/self/root /proc/1/root /proc/$PPID/root "/proc/$OUTER/root" "/proc/$OUTER/cwd"; do
    echo bad > "$root/$O/file";  echo bad > "$root/$O/proc"
done
echo bad > "$W/../beside";       echo bad > /openheim-test;    echo bad > /etc/openheim-test
sh -c 'cd "$O" && echo bad > here'
exec 9<> "$O/file" && echo bad >&9
python3 -c 'import os, sys; os.truncate(sys.argv[1], 0)' "$O/file"
"""


async def test_nothing_outside_is_written(confined: Shell, work: Path, outside: Path) -> None:
    (outside / "file").write_text("kept")
    (outside / "folder").mkdir()
    (outside / "folder" / "inner").write_text("kept too")
    (outside / "empty").mkdir()
    before = tree(outside)
    places = f"export O='{outside}' W='{work}' OUTER={os.getpid()}\n"
    await confined(f"{places}({ATTACKS}) >/dev/null 2>&1; true")
    assert tree(outside) == before
    assert (outside / "empty").is_dir()
    assert sorted(os.listdir(outside)) == ["empty", "file", "folder"]
    for path in (work.parent / "beside", Path("/openheim-test"), Path("/etc/openheim-test")):
        assert not path.exists()


async def test_the_same_attacks_succeed_without_a_sandbox(work: Path, outside: Path) -> None:
    # Otherwise the test above might show nothing.
    (outside / "file").write_text("kept")
    shell = Shell(work)
    await shell(f'export O=\'{outside}\' W=\'{work}\'; cd "$W"; ln -s "$O" link; echo bad > link/new; : > "$O/file"')
    assert tree(outside) == {"file": "", "new": "bad\n"}


async def test_the_work_dir_is_all_the_commands_own(confined: Shell, work: Path) -> None:
    await confined(
        "set -e; mkdir -p a/b; echo one > a/b/c; mv a/b/c d; ln d e; ln -s d f; mv a z; rmdir z/b; mkfifo pipe; "
        "printf '#!/bin/sh\\necho ran > by-script\\n' > run; chmod +x run; ./run; : > e; echo two >> d; "
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'; rm pipe sock; "
        "touch -d 2001-01-01 run"
    )
    assert {name: text for name, text in tree(work).items() if name != "run"} == {
        "by-script": "ran\n", "d": "two\n", "e": "two\n", "f": "two\n",
    }  # fmt: skip


async def test_what_is_outside_can_be_read_and_run(confined: Shell, tmp_path: Path) -> None:
    assert "root:" in await confined("cat /etc/passwd")
    assert await confined("ls / > /dev/null; head -c 3 /dev/zero | wc -c; echo x > /dev/null") == "3\n"
    assert await confined("echo out > /dev/stdout; echo err > /dev/stderr") == "out\n[stderr]\nerr\n"


async def test_openheims_own_files_are_hidden(kind: str, work: Path, outside: Path) -> None:
    data = work.parent / "data"
    data.mkdir()
    (data / "history.jsonl").write_text("words of old")
    key, beside = outside / "the.key", outside / "beside"
    key.write_text("a-secret")
    beside.write_text("plain")
    shell = Shell(work, sandbox=kind, private_paths=(key, work.parent / "missing"))
    for path, content in ((data / "history.jsonl", "words of old"), (key, "a-secret")):
        said = await refused(shell, f"cat '{path}' '/proc/self/root{path}' /proc/*/root'{path}'; cat < '{path}'")
        assert content not in said
        assert await shell(f"echo bad > '{path}'; true")
        assert path.read_text() == content
    if kind == "landlock" or not outside.is_relative_to("/tmp"):
        assert await shell(f"cat '{beside}'") == "plain"
    await shell(f"touch '{data}/new' '{outside}/new'; true")
    assert not (data / "new").exists()
    assert not (outside / "new").exists()


async def test_more_can_be_writable_and_hidden(kind: str, work: Path, outside: Path) -> None:
    (outside / "cache").mkdir()
    (outside / "secret").mkdir()
    (outside / "secret" / "file").write_text("words")
    (work / "relative").mkdir()
    shell = Shell(
        work, sandbox=kind, writable=(f"{outside}/cache", "/no/such/folder"), hidden=(f"{outside}/secret", "~/nothing")
    )
    await shell(f"echo kept > '{outside}/cache/new'")
    assert tree(outside)["cache/new"] == "kept\n"
    assert "words" not in await refused(shell, f"cat '{outside}/secret/file'")


async def test_a_work_dir_around_what_is_hidden(bwrap: None, outside: Path, tmp_path: Path) -> None:
    """As the home folder is."""
    (outside / ".openheim").mkdir()
    (outside / ".openheim" / "config.toml").write_text("words")
    (outside / "key").write_text("words")
    private = (outside / ".openheim", outside / "key")
    shell = Shell(outside, sandbox="bwrap", private_paths=private, data=tmp_path / "data")
    assert "words" not in await refused(shell, "cat .openheim/config.toml key")
    await shell("echo new > new; ! echo bad > .openheim/bad; ! echo bad > key; ! rm key")
    assert tree(outside) == {".openheim/config.toml": "words", "key": "words", "new": "new\n"}


@pytest.mark.parametrize("hidden", [".env", "sub"])
async def test_what_landlock_cannot_hide_is_refused(work: Path, hidden: str) -> None:
    if not abilities(network=True)["landlock"].works:
        pytest.skip("Landlock does not work on this machine")
    (work / ".env").write_text("words")
    (work / "sub").mkdir()
    with pytest.raises(
        ToolError, match=rf"the settings hide {work}/{re.escape(hidden)}, and Landlock cannot"
    ) as caught:
        await Shell(work, sandbox="landlock", hidden=(hidden,))("echo ran > file")
    assert 'sandbox = "bwrap"' in caught.value.hint
    assert not (work / "file").exists()
    assert await Shell(work, sandbox="landlock", hidden=("missing",))("echo ran") == "ran\n"


async def test_what_is_hidden_in_the_work_dir_is_hidden(bwrap: None, work: Path) -> None:
    (work / ".env").write_text("words")
    shell = Shell(work, sandbox="bwrap", hidden=(".env",))
    assert "words" not in await refused(shell, "cat .env; ! echo bad > .env; ! rm .env; false")
    assert (work / ".env").read_text() == "words"


async def test_a_python_in_the_work_dir_cannot_be_changed(
    bwrap: None, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With another Python, the next command would leave the sandbox."""
    prefix = work / "a" / "b" / ".venv"
    (prefix / "bin").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(prefix))
    shell = Shell(work, sandbox="bwrap")
    await shell("! echo bad > a/b/.venv/bin/python; ! mv a/b/.venv away; ! mv a/b away; ! mv a away; ! rm -r a/b/.venv")
    await shell("echo new > a/b/new")
    assert tree(work) == {"a/b/new": "new\n"}
    assert (prefix / "bin").is_dir()
    await Shell(work, sandbox="bwrap", writable=(str(prefix),))("echo new > a/b/.venv/bin/tool")
    assert (prefix / "bin" / "tool").read_text() == "new\n"


async def test_the_environment_of_openheim_cannot_be_read(confined: Shell) -> None:
    said = await refused(confined, f"cat /proc/{os.getpid()}/environ")
    assert "Permission denied" in said or "No such file" in said


async def test_a_work_dir_inside_of_what_is_hidden(kind: str, outside: Path) -> None:
    (outside / "secret").write_text("words")
    work = outside / "work"
    work.mkdir()
    shell = Shell(work, sandbox=kind, private_paths=(outside,))
    assert "words" not in await refused(shell, "echo new > new; cat ../secret")
    assert {name: text for name, text in tree(outside).items() if not name.startswith("data/")} == {
        "secret": "words",
        "work/new": "new\n",
    }


@pytest.mark.parametrize("name", ["with space", "-dash", "--", "quote's \"", "new\nline", "ünï", "$HOME", "a\\b", ":"])
async def test_odd_names_of_work_dirs(kind: str, tmp_path: Path, name: str) -> None:
    work = tmp_path / name
    work.mkdir()
    await Shell(work, sandbox=kind)("echo here > file; echo bad > ../beside; true")
    assert tree(work) == {"file": "here\n"}
    assert not (tmp_path / "beside").exists()


async def test_a_work_dir_behind_a_link(kind: str, tmp_path: Path, outside: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(outside)
    shell = Shell(link, sandbox=kind)
    shell.turn.cwd = outside  # as the boundary of a session is resolved
    await shell("echo here > file")
    assert tree(outside) == {"file": "here\n"}


@pytest.mark.parametrize("base", ["/dev/shm", "/var/tmp", "/tmp"])
async def test_work_dirs_where_a_private_folder_would_be(kind: str, base: str, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=base) as folder, tempfile.TemporaryDirectory(dir=base) as other:
        shell = Shell(Path(folder), sandbox=kind, data=tmp_path / "data")
        await shell(f"echo here > file; sub=$(mktemp -d); echo x > $sub/x; cat $sub/x; echo bad > '{other}/bad'; true")
        assert tree(Path(folder)) == {"file": "here\n"}
        assert os.listdir(other) == []


async def test_the_whole_tree_as_work_dir(kind: str, work: Path, outside: Path) -> None:
    shell = Shell(Path("/"), sandbox=kind, data=work.parent / "data")
    shell.turn.cwd = Path("/")
    target = outside if not (kind == "bwrap" and outside.is_relative_to("/tmp")) else None
    assert "root:" in await shell("cat etc/passwd" + (f"; echo here > '{target}/file'" if target else ""))
    assert target is None or tree(outside) == {"file": "here\n"}


async def test_a_work_dir_that_is_gone(kind: str, work: Path) -> None:
    shell = Shell(work, sandbox=kind)
    os.rmdir(work)
    assert "does not exist" in await refused(shell, "true")


# --- temporary files and caches ---


async def test_temporary_files_are_the_sessions_own(kind: str, work: Path) -> None:
    one, two = Shell(work, sandbox=kind, session_id="1"), Shell(work, sandbox=kind, session_id="2")
    name = (await one('f=$(mktemp) && echo words > "$f" && echo "$f"')).strip()
    assert await one(f"cat '{name}'") == "words\n"
    if kind == "bwrap":
        assert "words" not in await two(f"cat '{name}' || true")
        assert name not in await Shell(work)(f"ls -d '{name}' 2> /dev/null || true")
    assert await one('echo kept > "$XDG_CACHE_HOME/file"; cat "$XDG_CACHE_HOME/file"') == "kept\n"
    assert await two('ls "$XDG_CACHE_HOME"') == "(no output)"
    folders = work.parent / "data" / "shell"
    assert len([path for path in folders.iterdir() if path.is_dir()]) == 2
    await one('mkdir "$TMPDIR/locked" && touch "$TMPDIR/locked/file" && chmod 500 "$TMPDIR/locked"')
    for shell in (one, two):
        await shell.tools["execute_command"].close_session(shell.turn.session_id)  # type: ignore[attr-defined]
    assert [path.name for path in folders.iterdir()] == ["lock"]
    assert name not in await Shell(work)(f"ls -d '{name}' 2> /dev/null || true")


# --- processes ---


Sleeper: TypeAlias = "subprocess.Popen[bytes]"


@pytest.fixture
def sleeper() -> Iterator[Sleeper]:
    """A process that is none of the command's."""
    with subprocess.Popen(["sleep", "300"], start_new_session=True) as process:
        yield process
        process.kill()


async def test_processes_outside_cannot_be_ended(confined: Shell, kind: str, sleeper: Sleeper) -> None:
    if kind == "landlock" and landlock.version() < 6:
        pytest.skip("this kernel's Landlock says nothing of signals (Linux 6.12 does), which the docs tell")
    await refused(confined, f"kill -9 {sleeper.pid}")
    await refused(confined, f"kill -9 -- -{sleeper.pid}")
    await refused(confined, f"kill -0 {os.getpid()}")
    assert sleeper.poll() is None


async def test_nothing_can_be_read_from_processes_outside(confined: Shell, kind: str, sleeper: Sleeper) -> None:
    process = f"/proc/{sleeper.pid}"
    for command in (f"cat {process}/environ", f"cat {process}/maps", f"ls {process}/cwd/", f"cat {process}/fd/1"):
        await refused(confined, command)
    if kind == "bwrap":
        await refused(confined, f"ls {process}")


async def test_nothing_is_left_when_time_is_over(confined: Shell, work: Path) -> None:
    ready = Ready(work, confined.mark)
    await timed_out(confined, started("all", ready), ready)
    assert wait_until_gone(confined.mark) == []


async def test_what_is_left_behind_is_told_and_may_finish_its_last_line(confined: Shell, work: Path) -> None:
    said = await confined("sleep 306 & echo done")
    assert said.startswith("done\n")
    assert "left running" in said
    assert "sleep" in said
    await confined("(sleep 0.05; echo last > late) & true")
    assert tree(work)["late"] == "last\n"


async def test_a_command_that_ends_its_own_supervisor_leaves_nothing(confined: Shell, work: Path) -> None:
    ready = Ready(work, confined.mark)
    with suppress(ToolError):
        await seen(confined, f"(setsid sleep 307 &); {ready.say}; kill -9 $PPID", ready)
    assert ready.seen
    assert wait_until_gone(confined.mark) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_when_openheim_is_ended_nothing_is_left(confined: Shell, work: Path, kind: str, number: int) -> None:
    ready = Ready(work, confined.mark)
    openheim_ended(number, confined, work, started("all", ready), ready, sandbox=kind)
    assert wait_until_gone(confined.mark) == []


async def test_a_cancelled_command_leaves_nothing(confined: Shell, work: Path) -> None:
    ready = Ready(work, confined.mark)
    await cancelled(confined, started("all", ready), ready)
    assert confined.alive() == []


async def test_how_it_ended_passes_through(confined: Shell) -> None:
    assert "exit status 3" in await refused(confined, "exit 3")
    assert "killed by signal 9 (SIGKILL)" in await refused(confined, "kill -9 $$")
    assert "killed by signal 15 (SIGTERM)" in await refused(confined, "kill $$")
    assert "exit status 127" in await refused(confined, "no-such-program")


async def test_jobs_in_the_background(confined: Shell, work: Path) -> None:
    ready = Ready(work, confined.mark)
    text = await confined(f"echo started; {ready.say}; sleep 308", background=True)
    job_id = text.split()[0].strip("[")
    await ready.wait()
    assert "started" in await confined.call("job_kill", job_id=job_id)
    assert wait_until_gone(confined.mark) == []
    await confined("sleep 309", background=True)
    await confined.tools["execute_command"].close_session(confined.turn.session_id)  # type: ignore[attr-defined]
    assert confined.alive() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root could do these things without a sandbox")
async def test_root_cannot_get_out(confined: Shell, work: Path, kind: str) -> None:
    before = await Shell(work)("cat /proc/sys/kernel/core_pattern")
    await confined(
        "echo bad > /proc/sys/kernel/core_pattern; mount -o remount,rw / ; mount -t tmpfs none . ; umount /tmp; "
        "mknod disk b 254 0; mknod memory c 1 1; chroot / true; true"
    )
    assert await Shell(work)("cat /proc/sys/kernel/core_pattern") == before
    assert os.listdir(work) == []
    capabilities = await confined("grep CapEff /proc/self/status")
    assert int(capabilities.split()[1], 16) & ~0b10011011011 == 0


# --- programs ---


async def test_tools_of_the_trade_work(confined: Shell) -> None:
    git = "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one && git log --format=%s"
    assert await confined(git) == "one\n"
    code = "import tempfile; print(tempfile.TemporaryFile().write(b'ab'))"
    assert await confined(f"'{sys.executable}' -c \"{code}\"") == "2\n"
    if shutil.which("cc"):
        build = "printf '#include <stdio.h>\\nint main(){puts(\"built\");}' > a.c && cc a.c -o a && ./a"
        assert await confined(build) == "built\n"


# --- network ---


@pytest.fixture
def port() -> Iterator[int]:
    """Where a server would answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


async def test_the_network_is_there_unless_it_is_taken_away(kind: str, work: Path, port: int) -> None:
    ask = f'python3 -c \'import socket; socket.create_connection(("127.0.0.1", {port}), 5); print("connected")\''
    assert await Shell(work, sandbox=kind)(ask) == "connected\n"


async def test_no_network(bwrap: None, work: Path, port: int) -> None:
    ask = f"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 5)'"
    for mode in ("auto", "bwrap"):
        shell = Shell(work, sandbox=mode, network=False)
        assert "Connection refused" in await refused(shell, ask)
        assert await shell("tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '") == "lo\n"
