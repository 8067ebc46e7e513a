"""Where a path leads, and that it never leads out."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from openheim import ToolError
from openheim.files import Files, _directory


@pytest.fixture(params=["handles", "portable"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Everything holds with directory handles, and without them as on Windows."""
    if request.param == "portable":
        monkeypatch.setattr(_directory, "HAVE_HANDLES", False)
    return str(request.param)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work, out = tmp_path / "project", tmp_path / "out"
    (work / "d").mkdir(parents=True)
    out.mkdir()
    (work / "d" / "x").write_text("inside")
    (out / "secret").write_text("TOP")
    return work


@pytest.fixture
def files(work: Path) -> Files:
    return Files(work)


LINKS = {
    "to-dir": "d",
    "to-file": "d/x",
    "up-and-back": "../project/d/x",
    "by-way-of-a-link": "to-dir/../d/x",
    "two-steps": "to-file",
    "d/from-below": "../to-file",
    "d/two-up-and-back": "../../project/d",
}


@pytest.mark.parametrize(
    ("path", "canonical"),
    [
        (".", "."),
        ("d/x", "d/x"),
        ("d//./x", "d/x"),
        ("d/../d/x", "d/x"),
        ("nowhere/../d/x", "d/x"),
        ("new/a/b", "new/a/b"),
        ("to-dir", "d"),
        ("to-dir/x", "d/x"),
        ("to-dir/new", "d/new"),
        # By its text first: what the link points to does not matter.
        ("to-dir/../d/x", "d/x"),
        ("to-file", "d/x"),
        ("up-and-back", "d/x"),
        ("by-way-of-a-link", "d/x"),
        ("two-steps", "d/x"),
        ("d/from-below", "d/x"),
        ("to-dir/from-below", "d/x"),
        ("d/two-up-and-back/x", "d/x"),
        ("../project/d", "d"),
    ],
)
def test_resolve(work: Path, files: Files, path: str, canonical: str) -> None:
    for name, target in LINKS.items():
        (work / name).symlink_to(target)
    assert files.resolve(path) == canonical
    assert files.resolve(str(work / path)) == canonical


def test_absolute_links_inside_are_followed(work: Path, files: Files) -> None:
    (work / "abs").symlink_to(work / "d")
    (work / "abs-dots").symlink_to(f"{work}/d/../d/x")
    assert files.resolve("abs/x") == "d/x"
    assert files.resolve("abs-dots") == "d/x"


@pytest.mark.parametrize(
    "path",
    [
        "../out/secret",
        "d/../../out/secret",
        "nowhere/../../out/secret",
        "/etc/passwd",
        "//etc/passwd",
        "/",
        "..",
        "~/notes.txt",
        "/proc/self/environ",
        "/proc/self/cwd/../out/secret",
        "/dev/fd/0",
        "out-dir/secret",
        "out-dir/new",
        "out-dir",
        "out-file",
        "out-relative",
        "out-root",
        "out-by-link",
        "inner/out/secret",
    ],
)
def test_outside_is_refused_by_every_method(work: Path, files: Files, path: str) -> None:
    out = work.parent / "out"
    (work / "out-dir").symlink_to(out)
    (work / "out-file").symlink_to(out / "secret")
    (work / "out-relative").symlink_to("../out/secret")
    (work / "out-root").symlink_to("/")
    (work / "out-by-link").symlink_to("out-dir/secret")
    (work / "inner").symlink_to("..")
    for call in (
        lambda: files.resolve(path),
        lambda: files.open_read(path),
        lambda: files.read_bytes(path, limit=100),
        lambda: files.info(path),
        lambda: files.list(path, limit=10),
        lambda: files.replace(path, b"x"),
        lambda: files.update(path, bytes.upper, limit=100),
        lambda: files.make_dir(path),
        lambda: files.rename("d", path + "/sub/d"),
    ):
        with pytest.raises(ToolError) as caught:
            call()
        assert caught.value.message.startswith(f"path {path!r}"[:-1])
        assert f"is outside the work directory {str(work)!r}" in caught.value.message
    assert (out / "secret").read_text() == "TOP"
    assert os.listdir(out) == ["secret"]
    assert (work / "d" / "x").read_text() == "inside"


@pytest.mark.parametrize("path", ["broken", "broken/new", "chain", "chain/new", "d/broken-dots"])
def test_broken_links_are_refused(work: Path, files: Files, path: str) -> None:
    (work / "broken").symlink_to("nowhere")
    (work / "chain").symlink_to("broken/deeper")
    (work / "d" / "broken-dots").symlink_to("../nowhere/../d/x")
    for call in (lambda: files.resolve(path), lambda: files.replace(path, b"x"), lambda: files.make_dir(path)):
        with pytest.raises(ToolError, match="broken symbolic link"):
            call()
    assert sorted(os.listdir(work)) == ["broken", "chain", "d"]


@pytest.mark.parametrize("path", ["loop", "loop/x", "ping", "ping/x"])
def test_links_in_a_circle_end(work: Path, files: Files, path: str) -> None:
    (work / "loop").symlink_to("loop")
    (work / "ping").symlink_to("pong")
    (work / "pong").symlink_to("ping")
    with pytest.raises(ToolError, match="circle"):
        files.resolve(path)


def test_a_long_chain_of_steps_up_ends(work: Path, files: Files) -> None:
    (work / "long").symlink_to("d/../" * 500 + "d/x")
    with pytest.raises(ToolError, match="circle"):
        files.resolve("long")


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("a\0b", "NUL"),
        ("n" * 256, "too long: at most 255 bytes"),
        ("é" * 128, "too long: at most 255 bytes"),
        ("deep/" * 1000 + "x", "too long: 5001 bytes"),
        ("half \ud800", "no file name can have"),
        ("d/x/y", "not a directory"),
    ],
)
def test_what_is_no_path(files: Files, path: str, says: str) -> None:
    for call in (lambda: files.resolve(path), lambda: files.replace(path, b"")):
        with pytest.raises(ToolError, match=says):
            call()
    assert files.list(".", limit=9).total == 1


def test_the_root_may_be_given_by_a_link(work: Path) -> None:
    alias = work.parent / "alias"
    alias.symlink_to(work)
    files = Files(alias)
    assert files.root == work
    for path in ("d/x", str(alias / "d" / "x"), str(work / "d" / "x"), "../alias/d/x"):
        assert files.resolve(path) == "d/x"
    with pytest.raises(ToolError, match="outside"):
        files.resolve("../out/secret")


def test_an_outside_spelling_of_an_inside_place(work: Path) -> None:
    (work.parent / "way").symlink_to(work / "d")
    files = Files(work)
    assert files.resolve(str(work.parent / "way" / "x")) == "d/x"


def test_a_neighbour_whose_name_begins_alike_is_outside(work: Path, files: Files) -> None:
    neighbour = work.parent / "work-2"
    neighbour.mkdir()
    (neighbour / "x").write_text("TOP")
    with pytest.raises(ToolError, match="outside"):
        files.open_read(str(neighbour / "x"))


def test_the_file_system_root_as_boundary(work: Path) -> None:
    files = Files(Path("/"), cwd=work)
    assert files.read_bytes("d/x", limit=100)[0] == b"inside"
    assert files.resolve("/") == "."
    assert files.resolve("d/x") == str(work / "d" / "x")[1:]


def test_home_stands_for_the_home_directory(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(work))
    assert Files(work / "d", cwd=None).root == work / "d"
    assert Files(work).resolve("~/d/x") == "d/x"


def test_cwd_inside_starts_relative_paths(work: Path) -> None:
    files = Files(work, cwd=work / "d")
    assert files.cwd == work / "d"
    assert files.resolve("x") == "d/x"
    assert files.resolve("../new") == "new"
    assert files.resolve(".") == "d"
    with pytest.raises(ToolError, match="outside"):
        files.resolve("../../out/secret")


@pytest.mark.parametrize("cwd", ["../out", "nowhere", "d/x", "out-dir"])
def test_cwd_that_is_no_directory_inside_counts_as_none(work: Path, cwd: str) -> None:
    (work / "out-dir").symlink_to("../out")
    files = Files(work, cwd=work / cwd)
    assert files.cwd == work
    assert files.resolve("d/x") == "d/x"


@pytest.mark.parametrize("root", ["nowhere", "d/x"])
def test_a_root_that_is_no_directory_is_refused(work: Path, root: str) -> None:
    with pytest.raises(ToolError, match="not a directory"):
        Files(work / root)


def test_a_root_that_vanished(work: Path) -> None:
    (work / "gone").mkdir()
    files = Files(work / "gone")
    (work / "gone").rmdir()
    for call in (lambda: files.resolve("x"), lambda: files.info("x"), lambda: files.replace("x", b"1")):
        with pytest.raises(ToolError, match=r"the work directory .* cannot be opened: No such file"):
            call()
    assert not (work / "gone").exists()


def test_no_descriptor_is_left_open(work: Path, files: Files) -> None:
    (work / "loop").symlink_to("loop")
    (work / "to-dir").symlink_to("d")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        files.read_bytes("to-dir/x", limit=100)
        files.replace("to-dir/y/z", b"1")
        files.list("d", limit=1)
        files.rename("d/y", "d/w")
        files.delete("d/w")
        for path in ("loop", "d/x/y", "../out/secret", "nowhere/deep"):
            with pytest.raises(ToolError):
                files.open_read(path)
    assert len(os.listdir("/proc/self/fd")) == before
