"""Landlock: rules of the Linux kernel that a process puts on itself and on all that it starts.

Nothing has to be installed, and no right is needed. There are rules about files, and about signals in newer kernels;
what they do not cover is in ``docs/how-to/run-commands-safely.md``. The supervisor stands outside, where the command
has no power over it.
"""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from openheim_tools_shell.sandbox import landlock_launcher as launcher
from openheim_tools_shell.sandbox.links import follow, is_within
from openheim_tools_shell.sandbox.trial import TrialFailedError, fault_of

if TYPE_CHECKING:
    from openheim_tools_shell.sandbox.layout import Layout

__all__ = ("NO_NETWORK_REASON", "environment", "prefix", "version", "why_not")

NO_NETWORK_REASON = "Landlock cannot take the network away (it knows of TCP only)"

#: Imported, it comes from byte code. Its folder stands last, so that no module there hides one of the standard library.
_RUN_LAUNCHER = "import sys; sys.path.append(sys.argv[1]); from landlock_launcher import main; main()"


def version() -> int:
    """The version of Landlock's interface in this kernel, 0 if there is none."""
    try:
        return launcher.version()
    except (OSError, AttributeError):
        return 0


def why_not() -> str:
    """Why Landlock cannot be used here, ``""`` if it can. The first call tries it and may block for a moment."""
    try:
        return tried()
    except TrialFailedError as err:
        return str(err)


@lru_cache(maxsize=1)
def tried() -> str:
    """As :func:`why_not`, remembered. Raises an exception for what should not be."""
    if not sys.platform.startswith("linux"):
        return "it needs Linux"
    try:
        found = launcher.version()
    except (OSError, AttributeError) as err:
        reason = err.strerror if isinstance(err, OSError) else "the C library has no syscall()"
        return f"this kernel has none, or it is switched off ({reason})"
    if found < launcher.MIN_VERSION:
        return f"this kernel's version {found} does not keep files from being cut short; Linux 6.2 does"
    command = [*_launcher(), "--write", "/dev/null", "--", "/bin/sh", "-c", ":"]
    return fault_of(command)


def prefix(layout: Layout) -> tuple[str, ...]:
    """What to put before a command line."""
    arguments = list(_launcher())
    writable = layout.writable_places()
    for path in (*writable, str(layout.temporary_dir), str(layout.cache_dir)):
        place = follow(path)
        # Where commands can write anyway, they could make it a link just before the rule is made.
        around = [folder for folder in writable if folder != place.target]
        if not place.link_in(writable) and not is_within(place.target, around):
            arguments += ["--write", place.target]
    for hidden in layout.hidden_places():
        arguments += ["--hide", hidden]
    return (*arguments, "--")


def environment(layout: Layout) -> dict[str, str]:
    """Variables that lead programs to where they may write: nothing can take the place of /tmp here."""
    temporary = str(layout.temporary_dir.resolve())
    return {**dict.fromkeys(("TMPDIR", "TMP", "TEMP"), temporary), "XDG_CACHE_HOME": str(layout.cache_dir.resolve())}


def _launcher() -> tuple[str, ...]:
    folder = str(Path(launcher.__file__).parent)
    return (os.path.realpath(sys.executable), "-I", "-S", "-c", _RUN_LAUNCHER, folder)
