"""Replacing, updating, making, deleting and renaming."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from openheim import ToolError
from openheim.files import FileChangedError, Files, _replacing


@pytest.fixture
def files(tmp_path: Path) -> Files:
    (tmp_path / "work").mkdir()
    return Files(tmp_path / "work")


def names(files: Files) -> list[str]:
    return sorted(str(path.relative_to(files.root)) for path in files.root.rglob("*"))


def test_replace_creates_with_parents(files: Files) -> None:
    assert files.replace("a/b/c.txt", b"1") is False
    assert files.replace("a/b/c.txt", b"2") is True
    assert (files.root / "a/b/c.txt").read_bytes() == b"2"
    assert names(files) == ["a", "a/b", "a/b/c.txt"]


def test_a_new_file_follows_the_umask(files: Files) -> None:
    before = os.umask(0o027)
    try:
        files.replace("x", b"1")
    finally:
        os.umask(before)
    assert stat.S_IMODE((files.root / "x").stat().st_mode) == 0o640


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o666])
def test_permission_bits_stay(files: Files, mode: int) -> None:
    path = files.root / "x"
    path.write_bytes(b"1")
    path.chmod(mode)
    files.replace("x", b"2")
    assert (stat.S_IMODE(path.stat().st_mode), path.read_bytes()) == (mode, b"2")


def test_set_user_bits_do_not_stay(files: Files) -> None:
    path = files.root / "x"
    path.write_bytes(b"1")
    path.chmod(0o4755)
    files.replace("x", b"2")
    assert stat.S_IMODE(path.stat().st_mode) == 0o755


def test_owner_stays(files: Files) -> None:
    if os.geteuid() != 0:
        pytest.skip(reason="only root can give files away: the system refuses chown to everybody else")
    path = files.root / "x"
    path.write_bytes(b"1")
    os.chown(path, 65534, 65534)
    files.replace("x", b"2")
    assert (path.stat().st_uid, path.stat().st_gid) == (65534, 65534)


def test_extended_attributes_stay(files: Files) -> None:
    path = files.root / "x"
    path.write_bytes(b"old")
    try:
        os.setxattr(path, "user.note", b"mine")
    except OSError:
        pytest.skip(reason="this file system has no extended attributes, so that there is nothing to keep")
    files.replace("x", b"new")
    assert (path.read_bytes(), os.getxattr(path, "user.note")) == (b"new", b"mine")


FULL_DISK = """
import resource, sys
from pathlib import Path
from openheim import ToolError
from openheim.files import Files

resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
files = Files(Path(sys.argv[1]))
for path in ("old", "new", "deep/er/new"):
    try:
        files.replace(path, b"x" * 10_000)
    except ToolError as err:
        print(err)
try:
    files.update("old", lambda data: data * 1000, limit=10_000)
except ToolError as err:
    print(err)
"""


def test_a_disk_that_takes_no_more_leaves_the_old_content(files: Files) -> None:
    """The system refuses in the midst of writing, as a full disk does."""
    (files.root / "old").write_bytes(b"old content")
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(files.root)], capture_output=True, text=True, timeout=30, check=True
    )
    said = done.stdout.splitlines()
    assert len(said) == 4
    assert all("cannot be used: File too large" in line for line in said), said
    assert (files.root / "old").read_bytes() == b"old content"
    assert sorted(str(path.relative_to(files.root)) for path in files.root.rglob("*")) == ["deep", "deep/er", "old"]


def test_a_link_inside_is_followed_and_stays(files: Files) -> None:
    (files.root / "real").write_bytes(b"1")
    (files.root / "link").symlink_to("real")
    files.replace("link", b"2")
    assert (files.root / "link").is_symlink()
    assert (files.root / "real").read_bytes() == b"2"


def test_other_names_of_a_file_keep_the_old_content(tmp_path: Path, files: Files) -> None:
    (tmp_path / "outside").write_bytes(b"1")
    os.link(tmp_path / "outside", files.root / "x")
    files.update("x", lambda old: old + b"2", limit=10)
    assert (files.root / "x").read_bytes() == b"12"
    assert (tmp_path / "outside").read_bytes() == b"1"


@pytest.mark.parametrize(
    ("path", "says"), [("d", "is a directory"), (".", "is a directory"), ("pipe", "pipe"), ("n/", "names a dir")]
)
def test_what_cannot_be_replaced(files: Files, path: str, says: str) -> None:
    (files.root / "d").mkdir()
    os.mkfifo(files.root / "pipe")
    with pytest.raises(ToolError, match=says):
        files.replace(path, b"1")
    assert names(files) == ["d", "pipe"]


def test_replace_expects_a_version(files: Files) -> None:
    files.replace("x", b"1")
    _, version = files.read_bytes("x", limit=10)
    files.replace("x", b"2", expected=version)
    with pytest.raises(FileChangedError):
        files.replace("x", b"3", expected=version)
    files.delete("x")
    with pytest.raises(FileChangedError):
        files.replace("x", b"3", expected=version)
    assert names(files) == []


def test_a_failed_write_leaves_the_old_content_and_nothing_else(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    files.replace("x", b"old")

    def full(fd: int, data: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(ToolError, match="no space left"):
        files.replace("x", b"new")
    assert (files.root / "x").read_bytes() == b"old"
    assert names(files) == ["x"]


def test_update_begins_anew_when_the_file_changed_meanwhile(files: Files) -> None:
    files.replace("x", b"a")
    seen = []

    def change(old: bytes) -> bytes:
        seen.append(old)
        if len(seen) == 1:
            (files.root / "x").write_bytes(b"somebody else's")
        return old + b"!"

    assert files.update("x", change, limit=100) == (b"somebody else's", b"somebody else's!")
    assert seen == [b"a", b"somebody else's"]


def test_update_gives_up_in_the_end(files: Files) -> None:
    files.replace("x", b"")

    def change(old: bytes) -> bytes:
        with open(files.root / "x", "ab") as file:
            file.write(b".")
        return b"lost"

    with pytest.raises(FileChangedError, match="all the time"):
        files.update("x", change, limit=100)
    assert set((files.root / "x").read_bytes()) == {ord(".")}


def test_what_change_raises_leaves_the_file(files: Files) -> None:
    files.replace("x", b"1")

    def change(old: bytes) -> bytes:
        raise ToolError("no such text")

    with pytest.raises(ToolError, match="no such text"):
        files.update("x", change, limit=100)
    assert (files.root / "x").read_bytes() == b"1"
    assert names(files) == ["x"]


@pytest.mark.parametrize("alone", ["locks of threads", "locks of processes"])
def test_no_update_is_lost(files: Files, alone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the two locks is enough by itself for threads that change different places of one file."""
    if alone == "locks of threads":
        monkeypatch.setattr(_replacing, "_lock", lambda fd: None)
    else:
        from contextlib import nullcontext

        from openheim.files import _files

        monkeypatch.setattr(_files, "one_writer", lambda path: nullcontext())
        monkeypatch.setattr(_files, "MAX_TRIES", 10_000)
    (files.root / "real").write_bytes(b"." * 80)
    (files.root / "link").symlink_to("real")
    errors: list[BaseException] = []

    def writer(path: str, places: range) -> None:
        # Two spellings of one file, from two objects, as two sessions have them.
        mine = Files(files.root)
        try:
            for place in places:
                mine.update(path, lambda old, at=place: old[:at] + b"x" + old[at + 1 :], limit=100)
        except BaseException as err:
            errors.append(err)

    threads = [
        threading.Thread(target=writer, args=(path, range(start, 80, 2))) for path, start in (("link", 0), ("real", 1))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not errors
    assert (files.root / "real").read_bytes() == b"x" * 80
    assert names(files) == ["link", "real"]


WRITER = """
import sys
from pathlib import Path
from openheim.files import Files
files = Files(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for place in range(int(sys.argv[2]), 200, 2):
    files.update("x", lambda old: old[:place] + b"x" + old[place + 1 :], limit=1000)
"""


def test_no_update_of_another_process_is_lost(files: Files) -> None:
    files.replace("x", b"." * 200)
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(files.root), str(start)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for start in (0, 1)
    ]
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write("go\n")
            writer.stdin.flush()
        for writer in writers:
            writer.communicate(timeout=30)
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    assert [writer.returncode for writer in writers] == [0, 0]
    assert (files.root / "x").read_bytes() == b"x" * 200
    assert names(files) == ["x"]


def test_a_directory_that_stays_locked_is_an_error_in_the_end(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    monkeypatch.setattr(_replacing, "LOCK_SECS", 0.01)
    files.replace("x", b"1")
    fd = os.open(files.root, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        with pytest.raises(ToolError, match="locked"):
            files.replace("x", b"2")
    finally:
        os.close(fd)
    assert (files.root / "x").read_bytes() == b"1"
    assert names(files) == ["x"]


def test_the_table_of_writers_is_empty_when_nobody_writes(files: Files) -> None:
    for number in range(100):
        files.replace(f"{number}", b"1")
    assert len(_replacing._writers) == 0


def test_make_dir(files: Files) -> None:
    files.make_dir("a/b")
    files.make_dir("a/b")
    files.make_dir(".")
    files.replace("x", b"1")
    with pytest.raises(ToolError, match="exists already"):
        files.make_dir("x")
    assert names(files) == ["a", "a/b", "x"]


def test_delete(tmp_path: Path, files: Files) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/kept").write_bytes(b"1")
    files.replace("a/b/c", b"1")
    (files.root / "a/link-out").symlink_to(tmp_path / "out")
    (files.root / "link-out").symlink_to(tmp_path / "out")
    (files.root / "link-in").symlink_to("a")
    (files.root / "broken").symlink_to("nowhere")
    files.delete("link-in")
    files.delete("link-out")
    files.delete("broken")
    assert names(files) == ["a", "a/b", "a/b/c", "a/link-out"]
    files.delete("a")
    assert names(files) == []
    assert (tmp_path / "out/kept").read_bytes() == b"1"
    with pytest.raises(ToolError, match="does not exist"):
        files.delete("a")


@pytest.mark.parametrize("path", [".", "a/..", "a/../.", "{root}", "{root}/a/..", "../work"])
def test_the_work_directory_itself_is_neither_deleted_nor_moved(files: Files, path: str) -> None:
    files.replace("a/x", b"1")
    path = path.format(root=files.root)
    for call in (lambda: files.delete(path), lambda: files.rename(path, "b"), lambda: files.rename("a", path)):
        with pytest.raises(ToolError, match="work directory itself"):
            call()
    assert names(files) == ["a", "a/x"]


def test_rename(files: Files) -> None:
    files.replace("a", b"1")
    (files.root / "link").symlink_to("a")
    files.rename("a", "d/b")
    files.rename("link", "moved")
    assert names(files) == ["d", "d/b", "moved"]
    assert os.readlink(files.root / "moved") == "a"
    files.replace("c", b"2")
    with pytest.raises(ToolError, match="'d/b' exists already"):
        files.rename("c", "d/b")
    with pytest.raises(ToolError, match="'nowhere' does not exist"):
        files.rename("nowhere", "e")
    assert (files.root / "d/b").read_bytes() == b"1"
    with pytest.raises(ToolError):
        files.rename("d", "d/inside")
