"""The system call ``openat2``: a path is walked by the kernel in one step, which cannot lead out of where it began.

Linux has it since 5.6. Where it is missing, or a sandbox forbids it, :func:`open_beneath` gives None, and whoever asked
walks the path a component at a time.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("open_beneath",)

# The number is the same on every architecture of Linux that Python runs on but one, whose number stands for nothing
# elsewhere; the rest is from linux/openat2.h.
_SYS_OPENAT2 = 437
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08


def open_beneath(directory: int, path: str, flags: int) -> int | None:
    """Opens what stands at a path below an open directory, if no link is on the way.

    Args:
        directory: a descriptor.
        path: relative, of one or more components.
        flags: as for ``os.open``; nothing is created.

    Returns:
        A descriptor that child processes do not inherit; or None, if it did not work, for whatever reason.
    """
    call = _openat2()
    return None if call is None else call(directory, path, flags)


@cache
def _openat2() -> Callable[[int, str, int], int | None] | None:
    """The call, if this system has it and allows it."""
    if sys.platform != "linux" or os.uname().machine == "alpha":
        return None
    try:
        import ctypes

        system_call = ctypes.CDLL(None).syscall
    except (ImportError, OSError, AttributeError):
        return None
    system_call.restype = ctypes.c_long
    system_call.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)
    resolve = (_RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS | _RESOLVE_NO_SYMLINKS).to_bytes(8, sys.byteorder)

    def call(directory: int, path: str, flags: int) -> int | None:
        # struct open_how: flags, mode and resolve, of 64 bits each.
        how = (flags | os.O_CLOEXEC).to_bytes(8, sys.byteorder) + bytes(8) + resolve
        fd: int = system_call(_SYS_OPENAT2, directory, os.fsencode(path), how, len(how))
        return fd if fd >= 0 else None

    # Kernels that do not know it and filters that forbid it show at the first use.
    probe = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found = call(probe, ".", os.O_PATH | os.O_DIRECTORY)
    finally:
        os.close(probe)
    if found is None:
        return None
    os.close(found)
    return call
