"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from openheim.errors import StorageError
from openheim.store.writing import create_whole, replace_whole


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "f"
    for content in (b"first", b"", b"x" * 1_000_000):
        replace_whole(path, content, durable=True)
        assert path.read_bytes() == content
    assert names(tmp_path) == ["f"]
    assert oct(path.stat().st_mode & 0o777) == "0o600"


def test_a_new_file_replaces_none(tmp_path: Path) -> None:
    path = tmp_path / "f"
    create_whole(path, b"first")
    with pytest.raises(FileExistsError):
        create_whole(path, b"second")
    assert path.read_bytes() == b"first"
    assert names(tmp_path) == ["f"]


@pytest.mark.parametrize("taken", [False, True])
def test_where_a_file_has_only_one_name(tmp_path: Path, taken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "f"
    if taken:
        path.write_bytes(b"first")
        with pytest.raises(FileExistsError):
            create_whole(path, b"second")
    else:
        create_whole(path, b"first")
    assert path.read_bytes() == b"first"
    assert names(tmp_path) == ["f"]


def test_a_file_that_appeared_although_the_disk_reported_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def late(source: str, target: Path) -> None:
        link(source, target)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "link", late)
    create_whole(tmp_path / "f", b"content")
    assert (tmp_path / "f").read_bytes() == b"content"
    assert names(tmp_path) == ["f"]


@pytest.mark.parametrize("write", [replace_whole, create_whole])
def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path, write: object) -> None:
    assert callable(write)
    with pytest.raises(StorageError, match="No such file or directory"):
        write(tmp_path / "nowhere" / "f", b"content")
