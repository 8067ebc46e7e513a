"""The look-out for keys that every test and every command of the tests has: it does see one."""

from __future__ import annotations

import logging
import sys

import pytest

from tests.cli.command import Command, finish
from tests.support.keys import KEYS, KeyShown, watched_logs


@pytest.fixture
def no_key_in_logs() -> None:
    """In place of the one for every test: here keys are logged on purpose."""


@pytest.mark.parametrize("key", KEYS)
def test_a_key_in_a_log_is_seen(key: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "openheim")
    with pytest.raises(KeyShown, match="in a log"), watched_logs():
        logging.getLogger("openheim.something.below").debug("asked with %s", key)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_key_that_a_command_prints_is_seen(stream: str, openheim: Command) -> None:
    process = openheim.start_program([sys.executable, "-c", f"import sys; print({KEYS[0]!r}, file=sys.{stream})"])
    with pytest.raises(KeyShown, match="a command prints"):
        finish(process)
