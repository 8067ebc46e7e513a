"""Puts the rules of Landlock on itself and becomes the command. Run by itself, with the standard library alone.

Arguments: ``FOLDER [--write PATH]… [--hide PATH]… -- COMMAND…``. If a rule cannot be made, the command is not run, and
the exit status is 125. See the kernel's ``Documentation/userspace-api/landlock.rst``.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import sys

__all__ = ("MIN_VERSION", "main", "version")

#: The first version (Linux 6.2) that keeps files from being cut short by a path that cannot be opened for writing.
MIN_VERSION = 3

#: Exit status where the sandbox could not be set up.
FAILED = 125

# The numbers are the same on every architecture that Linux got after 2019, and on all others but alpha.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_RULE_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_ALL_OF_VERSION_3 = (1 << 15) - 1
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1 << 0, 1 << 1

#: What a rule about something that is no folder may speak of.
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_READING = _EXECUTE | _READ_FILE | _READ_DIR

#: Devices that keep nothing.
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")

# What root may still do to files, as bits: chown, dac_override, fowner, fsetid, setgid, setuid, net_bind_service.
_KEPT_CAPABILITIES = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4 | 1 << 6 | 1 << 7 | 1 << 10
_CAPABILITY_VERSION_3 = 0x20080522


def main() -> None:
    writable, hidden, command = _read_arguments(sys.argv[2:])
    try:
        _restrict(writable, hidden)
    except (OSError, AttributeError) as err:
        _stop(FAILED, f"the sandbox could not be set up, so the command was not run: {err}")
    try:
        os.execvp(command[0], command)
    except OSError as err:
        _stop(127 if err.errno == errno.ENOENT else 126, f"{command[0]}: {err.strerror}")


def version() -> int:
    """The version of the interface. Raises OSError where there is none."""
    return _call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))


def _read_arguments(arguments: list[str]) -> tuple[list[str], list[str], list[str]]:
    paths: dict[str, list[str]] = {"--write": [], "--hide": []}
    position = 0
    while arguments[position] != "--":
        paths[arguments[position]].append(arguments[position + 1])
        position += 2
    return paths["--write"], paths["--hide"], arguments[position + 1 :]


def _stop(status: int, text: str) -> None:
    os.write(2, f"openheim: {text}\n".encode("utf-8", "replace"))
    os._exit(status)


def _restrict(writable: list[str], hidden: list[str]) -> None:
    found = version()
    if found < MIN_VERSION:
        raise OSError(errno.ENOSYS, f"version {found} of Landlock is too old")
    files = _ALL_OF_VERSION_3 | (_IOCTL_DEV if found >= 5 else 0)
    scopes = _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS if found >= 6 else 0
    # Rights over files, over TCP, and scopes. A kernel takes what is longer than it knows if that is zero.
    attributes = struct.pack("=QQQ", files, 0, scopes)
    ruleset = _call(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    # Devices are made by nobody; root could make one of the disk.
    for path in writable:
        _allow(ruleset, path, files & ~(_MAKE_CHAR | _MAKE_BLOCK | _IOCTL_DEV))
    for path in _DEVICES:
        if os.path.exists(path):
            _allow(ruleset, path, files & (_READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV))
    _allow_reading(ruleset, hidden)
    _drop_capabilities()
    libc = _libc()
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, *map(ctypes.c_ulong, (1, 0, 0, 0))) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    _call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    """Raises OSError if the rule cannot be made."""
    handle = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            rights &= _OF_FILES
        rule = struct.pack("=Qi", rights, handle)
        _call(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_RULE_PATH_BENEATH), rule, ctypes.c_uint32(0))
    finally:
        os.close(handle)


def _allow_reading(ruleset: int, hidden: list[str]) -> None:
    """Reading is allowed for all but what is hidden. A rule allows a folder with all that is in it, so that of folders
    with something hidden in them every other entry gets a rule of its own. Names of files can be listed everywhere."""
    outermost = [path for path in hidden if not any(parent in hidden for parent in _parents(path))]
    above = {parent for path in outermost for parent in _parents(path)}
    if not above:
        _allow(ruleset, "/", _READING)
        return
    _allow(ruleset, "/", _READ_DIR)
    for folder in above:
        for entry in os.scandir(folder):
            if entry.path in above or entry.path in outermost or entry.is_symlink():
                continue
            try:
                _allow(ruleset, entry.path, _READING)
            except OSError:
                continue  # It is gone, or of a kind that there are no rules for: it cannot be read, then.


def _parents(path: str) -> list[str]:
    parents = []
    while path != "/":
        path = os.path.dirname(path)
        parents.append(path)
    return parents


def _drop_capabilities() -> None:
    """Root loses what it could get around the rules with; without new privileges it does not come back."""
    libc = _libc()
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    data = ctypes.create_string_buffer(24)
    if libc.capget(header, data) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    words = struct.unpack("=6I", data.raw)
    kept = [word & _KEPT_CAPABILITIES for word in words[:2]]
    if libc.capset(header, struct.pack("=6I", *kept, 0, 0, 0, 0)) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(number: int, *arguments: object) -> int:
    syscall = _libc().syscall
    syscall.restype = ctypes.c_long
    result: int = syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
