"""Opening, reading and listing."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from openheim import ToolError
from openheim._reading import read_regular
from openheim.files import Files, _files


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_open_read(tmp_path: Path, files: Files) -> None:
    (tmp_path / "x").write_bytes(b"one\ntwo\n")
    with files.open_read("x") as file:
        assert file.readline() == b"one\n"
        assert file.read() == b"two\n"


@pytest.mark.parametrize(
    ("path", "says"), [("nowhere", "does not exist"), (".", "is a directory"), ("pipe", "pipe"), ("socket", "socket")]
)
def test_what_cannot_be_opened(tmp_path: Path, files: Files, path: str, says: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(tmp_path / "socket"))
        for call in (lambda: files.open_read(path), lambda: files.read_bytes(path, limit=9)):
            with pytest.raises(ToolError, match=says):
                call()


def test_devices_are_not_opened() -> None:
    with pytest.raises(ToolError, match="device"):
        Files(Path("/dev")).open_read("zero")


def test_read_bytes_refuses_what_is_too_long(tmp_path: Path, files: Files) -> None:
    (tmp_path / "x").write_bytes(b"12345")
    assert files.read_bytes("x", limit=5)[0] == b"12345"
    with pytest.raises(ToolError, match="5 bytes, and at most 4"):
        files.read_bytes("x", limit=4)


def test_info(tmp_path: Path, files: Files) -> None:
    (tmp_path / "x").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("x")
    os.mkfifo(tmp_path / "pipe")
    found = files.info("link")
    assert found is not None
    assert (found.path, found.kind, found.size) == ("x", "file", 5)
    assert files.info("nowhere") is None
    assert files.info("nowhere/deep") is None
    kinds = {path: found.kind for path in (".", "x", "pipe") if (found := files.info(path)) is not None}
    assert kinds == {".": "directory", "x": "file", "pipe": "other"}


def test_what_does_not_tell_its_length() -> None:
    """Files of the kernel call themselves empty, and are read all the same."""
    with Files(Path("/proc/self")).folder(".") as folder:
        opened = folder.open_file("status", size=1 << 16)
    assert opened is not None
    data, rest = opened
    assert data.startswith(b"Name:")
    assert b"Threads:" in data
    assert rest is not None
    with rest:
        assert rest.read() == b""


def test_a_folder_follows_no_link(tmp_path: Path, files: Files) -> None:
    (tmp_path / "x").write_bytes(b"0123456789")
    (tmp_path / "link").symlink_to("x")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "socket"))
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c" / "y").write_bytes(b"y")
    (tmp_path / "a" / "to-b").symlink_to("b")
    with files.folder(".") as folder:
        assert sorted(folder.names(limit=9)) == [
            ("a", "directory"),
            ("link", "link"),
            ("pipe", "other"),
            ("socket", "other"),
            ("x", "file"),
        ]
        assert len(folder.names(limit=2)) == 2
        assert folder.open_file("x", size=10) == (b"0123456789", None)
        opened = folder.open_file("x", size=4)
        assert opened is not None
        data, rest = opened
        assert rest is not None
        with rest:
            assert (data, rest.read()) == (b"0123", b"456789")
        assert [folder.open_file(name, size=9) for name in ("link", "pipe", "socket", "a", "nowhere")] == [None] * 5
        assert folder.has("link")
        assert not folder.has("nowhere")
        for name in ("../outside", "a/b/c/y", "..", "", "\0"):
            assert folder.open_file(name, size=9) is None
            assert not folder.has(name)
        for below in ("a/to-b/c", "link", "x", "nowhere", "a/nowhere/c", "..", "a/../..", "/", "", "\0"):
            assert folder.folder(below) is None, below
        inner = folder.folder("a/b/c")
        assert inner is not None
        with inner:
            assert (inner.path, inner.names(limit=9)) == ("a/b/c", [("y", "file")])
        near = folder.folder("a")
        assert near is not None
        with near:
            again = near.duplicate()
        with again:
            assert again.names(limit=9) == again.names(limit=9) != []
            directory = again.fileno()
            assert directory is not None
            assert os.readlink("to-b", dir_fd=directory) == "b"
    with pytest.raises(ToolError, match="not a directory"), files.folder("x"):
        pass
    with files.folder("a/to-b") as folder:
        assert folder.path == "a/b"


def test_list_is_sorted_and_bounded(tmp_path: Path, files: Files) -> None:
    for name in ("b", "a", "C"):
        (tmp_path / name).write_bytes(b"1")
    (tmp_path / "d").mkdir()
    (tmp_path / "link").symlink_to("../elsewhere")
    listing = files.list(".", limit=10)
    assert [(entry.name, entry.kind, entry.link) for entry in listing.entries] == [
        ("C", "file", None),
        ("a", "file", None),
        ("b", "file", None),
        ("d", "directory", None),
        ("link", "link", "../elsewhere"),
    ]
    assert listing.total == 5
    assert [entry.name for entry in files.list(".", limit=2).entries] == ["C", "a"]
    assert files.list(".", limit=2).total == 5
    assert files.list("d", limit=2).total == 0
    with pytest.raises(ToolError, match="is not a directory"):
        files.list("a", limit=2)


def test_a_part_of_a_list_asks_about_that_part(tmp_path: Path, files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        (tmp_path / f"{number:02}").touch()
    asked: list[object] = []
    stat = os.stat

    def counting(path: str, **more: Any) -> os.stat_result:
        asked.append(path)
        return stat(path, **more)

    monkeypatch.setattr(os, "stat", counting)
    listing = files.list(".", limit=3, offset=20)
    assert [entry.name for entry in listing.entries] == ["20", "21", "22"]
    assert (listing.total, listing.whole) == (30, True)
    assert asked == ["20", "21", "22"]
    assert [entry.name for entry in files.list(".", limit=9, offset=28).entries] == ["28", "29"]
    for limit, offset in ((3, 30), (0, 0), (0, 5)):
        listing = files.list(".", limit=limit, offset=offset)
        assert (listing.entries, listing.total) == ((), 30)


def test_a_long_directory_is_not_read_to_its_end(tmp_path: Path, files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        (tmp_path / f"{number}").touch()
    for most, total, whole in ((29, 29, False), (30, 30, True), (31, 30, True)):
        monkeypatch.setattr(_files, "MAX_NAMES", most)
        listing = files.list(".", limit=5)
        assert (len(listing.entries), listing.total, listing.whole) == (5, total, whole)


def test_whoever_does_not_wait_any_more_ends_a_list(
    tmp_path: Path, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_files, "NAMES_A_CHECK", 10)
    for number in range(30):
        (tmp_path / f"{number}").touch()
    calls = 0

    def check() -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.list(".", limit=1, check=check)
    assert calls == 2


AS_SOMEBODY = """
import os, sys
from pathlib import Path
from openheim import ToolError
from openheim.files import Files
files = Files(Path(sys.argv[1]))
os.setgroups([]); os.setgid(65534); os.setuid(65534)
for call in (lambda: files.open_read("closed/x"), lambda: files.open_read("unreadable"),
             lambda: files.list("closed", limit=1), lambda: files.replace("read-only", b"2"),
             lambda: files.replace("new", b"2"), lambda: files.resolve("closed/x"),
             lambda: files.delete("unreadable")):
    try: call()
    except ToolError as err: print(err)
    else: print("no error")
print(files.read_bytes("passage/x", limit=9)[0])
"""


def test_what_the_system_refuses(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip(reason="only root can become somebody else, which this gives up root for")
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:
        if parent.name.startswith(("pytest-", "popen-")):  # pytest's own; a worker of xdist has one more of them
            parent.chmod(0o755)
    for name, mode in (("closed", 0o000), ("passage", 0o711)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_bytes(b"1")
        (tmp_path / name).chmod(mode)
    for name, mode in (("unreadable", 0o000), ("read-only", 0o444)):
        (tmp_path / name).write_bytes(b"1")
        (tmp_path / name).chmod(mode)
    done = subprocess.run(
        [sys.executable, "-c", AS_SOMEBODY, str(tmp_path)], capture_output=True, text=True, timeout=30, check=True
    )
    said = done.stdout.splitlines()
    assert said[:-1] == [
        f"permission denied for {path!r}"
        for path in ("closed/x", "unreadable", "closed", "read-only", "new", "closed/x", "unreadable")
    ]
    # A directory that may be passed through but not listed is no obstacle.
    assert said[-1] == "b'1'"


def test_a_file_is_read_no_further_than_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"0123456789" * 10_000)
    assert read_regular(path, limit=100_000) == path.read_bytes()
    with pytest.raises(OSError, match="longer than"):
        read_regular(path, limit=99_999)
    # As of one that grows after it was looked at, and of those of /proc.
    monkeypatch.setattr(os, "fstat", lambda file: os.stat_result((stat.S_IFREG | 0o600, *[0] * 9)))
    assert read_regular(path, limit=100_000) == path.read_bytes()
    with pytest.raises(OSError, match="longer than"):
        read_regular(path, limit=99_999)
