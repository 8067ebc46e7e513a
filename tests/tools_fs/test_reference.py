"""What docs/reference/file-tools.md says about links, ignore files and paths where other programs differ."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from openheim.testing import FakeTurn
from tests.tools_fs.calls import call

pytestmark = pytest.mark.anyio


async def found(turn: FakeTurn, **arguments: object) -> list[str]:
    lines = (await call(turn, "search", pattern="needle", **arguments)).splitlines()
    return [line.partition(":")[0] for line in lines if not line.startswith("No matches")]


async def test_gitignore_counts_outside_of_a_repository(work: Path, turn: FakeTurn) -> None:
    for name in ("kept", "left-out"):
        (work / name).write_text("needle")
    (work / ".gitignore").write_text("left-out\n")
    assert await found(turn) == ["kept"]
    # What is asked for by its name is searched nevertheless.
    assert await found(turn, path="left-out") == ["left-out"]


async def test_a_tracked_file_is_skipped_like_any_other(work: Path, turn: FakeTurn) -> None:
    (work / "tracked").write_text("needle")
    for arguments in (["init", "-q"], ["add", "tracked"]):
        await anyio.run_process(["git", *arguments], cwd=work)
    (work / ".gitignore").write_text("tracked\n")
    assert await found(turn) == []


async def test_a_hidden_directory_is_searched_when_it_is_the_path(work: Path, turn: FakeTurn) -> None:
    (work / ".github").mkdir()
    (work / ".github/x").write_text("needle")
    assert await found(turn) == []
    assert await found(turn, path=".github") == [".github/x"]


async def test_found_paths_start_from_the_directory_of_the_session(work: Path) -> None:
    (work / "a/b").mkdir(parents=True)
    (work / "a/b/x").write_text("needle")
    turn = FakeTurn(work, cwd=work / "a")
    assert await found(turn, path="b") == ["b/x"]
    assert await found(turn, path="..") == ["b/x"]
    assert await call(turn, "read_file", path="b/x") == "needle"


async def test_links(work: Path, turn: FakeTurn) -> None:
    (work / "real").mkdir()
    (work / "real/x").write_text("needle")
    (work / "link").symlink_to("real")
    (work / "x").write_text("beside the link")
    assert await found(turn) == ["real/x"]
    assert await found(turn, path="link") == ["real/x"]
    assert await call(turn, "read_file", path="link/../x") == "beside the link"
    await call(turn, "write_file", path="link/x", content="new")
    assert (work / "link").is_symlink()
    assert (work / "real/x").read_text() == "new"


async def test_a_listing_shows_hidden_and_ignored_names(work: Path, turn: FakeTurn) -> None:
    (work / ".gitignore").write_text("left-out\n")
    (work / "left-out").touch()
    assert (await call(turn, "list_dir")).splitlines() == [".gitignore", "left-out"]
