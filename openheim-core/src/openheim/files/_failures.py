"""What the operating system refuses, in words for a model or a person."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING

from openheim.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("failures_of",)

_TEXTS = {
    errno.ENOENT: "{path} does not exist",
    errno.ENOTDIR: "a part of {path} is not a directory",
    errno.EISDIR: "{path} is a directory",
    errno.EEXIST: "{path} exists already",
    errno.EACCES: "permission denied for {path}",
    errno.EPERM: "permission denied for {path}",
    errno.EROFS: "{path} is on a read-only file system",
    errno.ENOSPC: "no space left on the device of {path}",
    errno.EDQUOT: "the disk quota is used up for {path}",
    errno.ENAMETOOLONG: "a name in {path} is too long",
    errno.ELOOP: "{path} changed while it was used, or its symbolic links lead in a circle",
    errno.EBUSY: "{path} is in use by the system",
}


@contextmanager
def failures_of(path: str) -> Iterator[None]:
    """Turns an :class:`OSError` into a :class:`ToolError` that names ``path`` as the caller spelled it."""
    try:
        yield
    except OSError as err:
        text = _TEXTS.get(err.errno or 0)
        if text is None:
            raise ToolError(f"{path!r} cannot be used: {err.strerror or err}") from err
        raise ToolError(text.format(path=repr(path))) from err
