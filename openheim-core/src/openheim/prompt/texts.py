"""Text files that go into the prompt: bounded in size, read again only when they have changed."""

from __future__ import annotations

import codecs
import os
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from openheim.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from openheim.files import Files

__all__ = ("MAX_TEXT_BYTES", "Text", "TextCache", "read_own_text", "read_text")

#: Longest text that is taken from one file. What is beyond is cut off, with a note.
MAX_TEXT_BYTES = 64 * 1024

#: Files that a cache remembers.
_KEPT = 256


@dataclass(frozen=True, slots=True)
class Text:
    """A file's text. ``content`` is None if the file cannot be used; ``problem`` says why, or what is wrong with it."""

    content: str | None
    problem: str = ""


class TextCache:
    """Texts by path. One that has not changed costs a look at its status; sessions may share a cache."""

    def __init__(self) -> None:
        self._texts: OrderedDict[tuple[str, Path | None], tuple[tuple[int, ...], Text]] = OrderedDict()

    def text(self, path: Path, read: Callable[[Path], Text], *, within: Path | None = None) -> Text | None:
        """The text of the file at ``path``, or None if there is no file.

        Args:
            read: reads it, when it is new or has changed.
            within: the boundary that ``read`` keeps to: what one may read, another may not.
        """
        key = str(path), within
        try:
            found = os.stat(path)
        except (OSError, ValueError):
            self._texts.pop(key, None)
            return None
        stamp = (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)
        known = self._texts.get(key)
        if known is not None and known[0] == stamp:
            self._texts.move_to_end(key)
            return known[1]
        text = read(path)
        self._texts[key] = stamp, text
        self._texts.move_to_end(key)
        while len(self._texts) > _KEPT:
            self._texts.popitem(last=False)
        return text


def read_text(files: Files, path: str) -> Text:
    """A file below the boundary of ``files``. A link that leads out of it is refused; so is what is no file."""
    try:
        with files.open_read(path) as file:
            data = file.read(MAX_TEXT_BYTES + 1)
    except ToolError as err:
        return Text(None, str(err))
    except OSError as err:
        return Text(None, f"{path!r} cannot be read: {err.strerror}")
    cut = len(data) > MAX_TEXT_BYTES
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    try:
        # A character that the limit cuts in two is left out.
        content = decoder.decode(data[:MAX_TEXT_BYTES], final=not cut)
    except UnicodeDecodeError:
        return Text(None, f"{path!r} is not UTF-8")
    if not cut:
        return Text(content)
    return Text(
        f"{content}\n[cut here: the file is longer than {MAX_TEXT_BYTES} bytes]",
        f"{path!r} is longer than {MAX_TEXT_BYTES} bytes and was cut",
    )


def read_own_text(path: Path) -> Text:
    """A file of the user's own, wherever links to it lead."""
    from openheim.files import Files

    real = os.path.realpath(path)
    try:
        return read_text(Files(Path(os.path.dirname(real))), os.path.basename(real))
    except ToolError as err:
        return Text(None, str(err))
