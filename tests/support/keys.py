"""Keys that tests give to provider entries, and a look-out for them where no key may ever show."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ("KEYS", "KeyShown", "require_no_key", "watched_logs")

#: Long enough to stand nowhere by chance. A test that gives an entry another key of its own looks for that itself.
KEYS = (
    "sk-test-5f0c3b9d",
    "sk-canary",
    "canary4f9d02c7b1e85a36",
    "kanarie81c6e3f0a97d24b5",
    "contract-key-0123456789abcdef",
)

#: The libraries below log whole headers at debug level, which ``--log-level`` never turns on.
_LOGGER = "openheim"


class KeyShown(AssertionError):
    """A key shows where it must not."""


def require_no_key(where: str, text: str) -> None:
    """Raises :class:`KeyShown` if one of the keys is in the text."""
    for key in KEYS:
        if key in text:
            at = text.index(key)
            raise KeyShown(f"a provider's key shows in {where}: …{text[max(0, at - 200) : at + 200]}…")


@contextmanager
def watched_logs() -> Iterator[None]:
    """Everything that openheim logs meanwhile is looked through, at whatever level is on.

    Raises:
        KeyShown: at the end; where it was logged, the code under test might take it for a failure of its own.
    """
    logged: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: logged.append(handler.format(record))  # type: ignore[method-assign]  # no class for it
    logger = logging.getLogger(_LOGGER)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
    require_no_key("a log", "\n".join(logged))
