"""Who a file belongs to after it was written by somebody else, and who may use it then."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from openheim.files import Files

#: Imports first: the interpreter may stand where others cannot get to.
WRITER = """
import os, sys
from pathlib import Path
from openheim.files import Files
files = Files(Path(sys.argv[1]))
user, group = map(int, sys.argv[2:])
os.setgroups([group])
os.setgid(user)
os.setuid(user)
files.replace("x", b"new")
"""

OURS, SHARED, ALIEN = 65531, 65532, 65533


@pytest.fixture
def shared() -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip(reason="only root can be somebody else, and files of two owners are needed")
    # Not a folder of pytest's, which are for their owner alone.
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        yield Path(folder)


def written(path: Path, mode: int, group: int) -> os.stat_result:
    path.write_bytes(b"old")
    os.chown(path, 0, group)
    path.chmod(mode)
    subprocess.run([sys.executable, "-c", WRITER, str(path.parent), str(OURS), str(SHARED)], timeout=30, check=True)
    assert path.read_bytes() == b"new"
    return path.stat()


def test_the_group_stays_where_only_the_owner_cannot(shared: Path) -> None:
    found = written(shared / "x", 0o664, SHARED)
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (OURS, SHARED, 0o664)


@pytest.mark.parametrize(
    ("mode", "after"), [(0o666, 0o666), (0o646, 0o644), (0o6777, 0o777), (0o606, 0o600), (0o757, 0o755)]
)
def test_nobody_may_more_than_before_where_the_group_cannot_stay(shared: Path, mode: int, after: int) -> None:
    found = written(shared / "x", mode, ALIEN)
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (OURS, OURS, after)


def test_the_bits_that_vouch_for_content_do_not_stay(shared: Path) -> None:
    found = written(shared / "x", 0o6774, SHARED)
    assert (found.st_gid, stat.S_IMODE(found.st_mode)) == (SHARED, 0o774)


def test_owner_and_group_that_are_refused_are_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container, where most ids have no meaning."""
    if os.geteuid() != 0:
        pytest.skip(reason="only root can give files away, and the file has to be somebody else's first")
    (tmp_path / "x").write_bytes(b"old")
    os.chown(tmp_path / "x", ALIEN, ALIEN)
    (tmp_path / "x").chmod(0o640)

    def refuse(fd: int, owner: int, group: int) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "fchown", refuse)
    Files(tmp_path).replace("x", b"new")
    assert (tmp_path / "x").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o600
