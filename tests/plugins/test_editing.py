"""Edits of config files: whole or not at all."""

from __future__ import annotations

import os
import stat
import threading
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from openheim.config.editing import edit_config
from openheim.errors import ConfigError, StorageError


def setting(value: Any) -> Any:
    """A change that sets ``key``."""

    def change(document: Any) -> None:
        document["key"] = value

    return change


def test_a_file_is_made_for_its_owner_only(tmp_path: Path) -> None:
    config = tmp_path / "new" / "config.toml"
    assert edit_config(config, setting("v"))
    assert config.read_text() == 'key = "v"\n'
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    assert stat.S_IMODE(config.parent.stat().st_mode) == 0o700


def test_nothing_is_written_where_nothing_changes(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    assert not edit_config(config, lambda document: None)
    assert not config.exists()
    config.write_text("key = 1\n")
    before = config.stat()
    assert not edit_config(config, setting(1))
    assert (config.stat().st_ino, config.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o640])
def test_permissions_are_kept(tmp_path: Path, mode: int) -> None:
    config = tmp_path / "config.toml"
    config.write_text("key = 1\n")
    config.chmod(mode)
    edit_config(config, setting(2))
    assert stat.S_IMODE(config.stat().st_mode) == mode


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "openheim.toml"
    real.parent.mkdir()
    real.write_text("key = 1\n")
    link = tmp_path / "config.toml"
    link.symlink_to(real)
    edit_config(link, setting(2))
    assert link.is_symlink()
    assert real.read_text() == "key = 2\n"
    assert os.listdir(real.parent) == ["openheim.toml"]


def test_a_change_that_fails_changes_nothing(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("key = 1\n")

    def change(document: Any) -> None:
        document["key"] = 2
        raise LookupError("no")

    with pytest.raises(LookupError):
        edit_config(config, change)
    assert config.read_text() == "key = 1\n"
    assert os.listdir(tmp_path) == ["config.toml"]


def test_only_the_named_keys_may_change(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    text = "key = 1\n[table]\nother = 2\n"
    config.write_text(text)

    def change(document: Any) -> None:
        document["key"] = 3
        document["table"]["other"] = 4

    for only in ([("key",)], [("table", "other")], [("table",), ("else",)], []):
        with pytest.raises(ConfigError, match="cannot be edited safely"):
            edit_config(config, change, only=only)
    assert config.read_text() == text
    assert edit_config(config, change, only=[("key",), ("table", "other")])


@pytest.mark.parametrize("content", [b"key = \n", b"key = 'a'\nkey = 'b'\n", b"\xff\n"])
def test_what_is_no_toml_is_left_alone(tmp_path: Path, content: bytes) -> None:
    config = tmp_path / "config.toml"
    config.write_bytes(content)
    with pytest.raises(ConfigError, match=r"config\.toml, line"):
        edit_config(config, setting(1))
    assert config.read_bytes() == content


def test_somebody_elses_change_is_not_lost(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("key = 1\n")

    def change(document: Any) -> None:
        document["key"] = 2
        config.write_text("key = 1\ntheirs = true\n")

    with pytest.raises(ConfigError, match="somebody else"):
        edit_config(config, change)
    assert config.read_text() == "key = 1\ntheirs = true\n"


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "config.toml"
    config.write_text("key = 1\n")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left on device"):
        edit_config(config, setting(2))
    assert config.read_text() == "key = 1\n"
    assert os.listdir(tmp_path) == ["config.toml"]


def test_line_ends_of_other_systems_stay(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_bytes(b"# a\r\nkey = 1\r\n[t]\r\nx = 2\r\n")

    def change(document: Any) -> None:
        document["key"] = 5
        document["t"]["y"] = 6

    edit_config(config, change)
    assert config.read_bytes() == b"# a\r\nkey = 5\r\n[t]\r\nx = 2\r\ny = 6\r\n"


def test_changes_at_a_time_are_all_kept(tmp_path: Path) -> None:
    config = tmp_path / "new" / "config.toml"
    start = threading.Barrier(8)

    def add(number: int) -> None:
        def change(document: Any) -> None:
            document[f"key{number}"] = number

        start.wait(10)
        assert edit_config(config, change)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(8)))
    assert tomllib.loads(config.read_text()) == {f"key{number}": number for number in range(8)}


def test_a_change_that_fails_leaves_no_folder(tmp_path: Path) -> None:
    def change(document: Any) -> None:
        raise ConfigError("no")

    with pytest.raises(ConfigError, match="no"):
        edit_config(tmp_path / "new" / "config.toml", change)
    assert list(tmp_path.iterdir()) == []
