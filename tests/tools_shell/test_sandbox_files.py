"""Which files commands in a sandbox can read and change: real processes, judged by what is there after."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

import pytest

from openheim import ToolError
from openheim_tools_shell.sandbox import abilities
from tests.tools_shell.calls import Shell, refused, tree

pytestmark = pytest.mark.anyio


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
