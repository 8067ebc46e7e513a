"""bubblewrap: a view of the file system made for the command, and namespaces of its own.

The supervisor stands inside. It sees the processes that it has to end and no others, openheim can end all of them by
ending bwrap, and the exit status is told as it was, where bwrap itself would make a number of a signal.
"""

from __future__ import annotations

import os
import shutil
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from openheim_tools_shell.sandbox.links import follow, is_within
from openheim_tools_shell.sandbox.program import own_program
from openheim_tools_shell.sandbox.trial import TrialFailedError, fault_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openheim_tools_shell.sandbox.layout import Layout

__all__ = ("environment", "find_bwrap", "prefix", "why_not")

#: Folders that are empty for commands. Under /run are the sockets of services that would do for a command what it
#: cannot do itself: start a container or a unit of systemd.
_EMPTIED = ("/var/tmp", "/run", "/var/run")

#: What names are resolved with, and programs on NixOS are found by.
_KEPT_OF_RUN = ("/run/current-system", "/run/booted-system", "/run/opengl-driver", "/run/systemd/resolve")

#: What root may still do to files. Among what is left out: mounting, tracing, loading modules, devices.
_KEPT_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "NET_BIND_SERVICE", "SETGID", "SETUID")


class _Place(NamedTuple):
    """A path within, and the option that puts something there."""

    path: str
    option: str
    source: str = ""

    def arguments(self) -> list[str]:
        return [self.option, self.source, self.path] if self.source else [self.option, self.path]


#: Where systems have it.
_SYSTEM_PATH = ("/usr/bin", "/bin", "/usr/local/bin")


@lru_cache(maxsize=256)
def find_bwrap(writable: tuple[str, ...] = ()) -> str | None:
    """The program, by its full name: as it was found first by this process, for the same places to write to.

    PATH may lead to where commands can write, into an environment of Python in the work directory for instance: a
    program from there must not be what confines them.

    Args:
        writable: folders that commands can write to, beside the current one and the environment of Python. No links.
    """
    known = (os.path.realpath(os.getcwd()), os.path.realpath(sys.prefix), *writable)
    # Where commands may write everywhere, no program is out of their reach.
    written = [folder for folder in known if folder != "/"]
    # A stable sort: the system's own folders first, and else the order of PATH.
    for folder in sorted(os.get_exec_path(), key=lambda folder: folder not in _SYSTEM_PATH):
        program = shutil.which("bwrap", path=folder) if os.path.isabs(folder) else None
        if program is not None:
            place = follow(program)
            if not place.link_in(written) and not is_within(place.target, written):
                return program
    return None


def why_not(program: str | None, network: bool) -> str:
    """Why bubblewrap cannot be used here, ``""`` if it can. The first call runs it and may block for a moment."""
    try:
        return tried(program, network)
    except TrialFailedError as err:
        return str(err)


@lru_cache(maxsize=8)
def tried(program: str | None, network: bool) -> str:
    """As :func:`why_not`, remembered. Raises an exception for what should not be."""
    if not sys.platform.startswith("linux"):
        return "it needs Linux"
    if program is None:
        return "bwrap is not installed (package bubblewrap)"
    command = [program, *_namespaces(network), "--ro-bind", "/", "/", *_system(), "--", "/bin/sh", "-c", ":"]
    return fault_of(command)


def prefix(program: str, layout: Layout) -> tuple[str, ...]:
    """What to put before a command line."""
    places = list(_places(layout))
    whole_tree = "--bind" if layout.writable_places()[:1] == ["/"] else "--ro-bind"
    arguments = [program, *_namespaces(layout.network), whole_tree, "/", "/", *_system()]
    for place in places:
        arguments += place.arguments()
    for place in places:
        if place.option == "--tmpfs" and place.path not in _EMPTIED:
            arguments += ["--remount-ro", place.path]
    return (*arguments, "--chdir", "/", "--")


def environment(layout: Layout) -> dict[str, str]:
    """Variables that lead programs to where they may write."""
    return {**dict.fromkeys(("TMPDIR", "TMP", "TEMP"), "/tmp"), "XDG_CACHE_HOME": str(layout.cache_dir.resolve())}


def _namespaces(network: bool) -> list[str]:
    options = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    if not network:
        options.append("--unshare-net")
    options += ["--die-with-parent", "--new-session"]
    if os.geteuid() == 0:
        options += ["--cap-drop", "ALL"]
        for name in _KEPT_CAPABILITIES:
            options += ["--cap-add", f"CAP_{name}"]
    return options


def _system() -> list[str]:
    options = ["--dev", "/dev", "--proc", "/proc"]
    if os.geteuid() == 0:
        # Root needs no capability to write to /proc/sys, and so to the settings of the whole machine.
        options += ["--remount-ro", "/proc"]
    return options


def _places(layout: Layout) -> Iterator[_Place]:
    """What is put over the tree, outer folders first: an inner one is put on what is there by then."""
    places: dict[str, _Place] = {}

    def put(path: str, option: str, source: str = "") -> None:
        places[path] = _Place(path, option, source)

    for path in _EMPTIED:
        if os.path.isdir(path) and not os.path.islink(path):
            put(path, "--tmpfs")
    temporary = os.path.realpath("/tmp")
    put(temporary, "--bind", str(layout.temporary_dir.resolve()))
    for path in (*_KEPT_OF_RUN, _resolver()):
        if path and os.path.exists(path):
            put(path, "--ro-bind", path)
    hidden = layout.hidden_places()
    for path in hidden:
        if os.path.isdir(path):
            put(path, "--tmpfs")
    writable = layout.writable_places()
    for path in writable:
        if path != "/":
            put(path, "--bind", path)
    cache = str(layout.cache_dir.resolve())
    put(cache, "--bind", cache)
    unseen = {path for path, place in places.items() if place.option == "--tmpfs"}
    if temporary not in writable:
        unseen.add(temporary)
    for path in hidden:
        # In a folder that is not there any more, there is nothing to hide.
        if not os.path.isdir(path) and _nearest(path, places) not in unseen:
            put(path, "--ro-bind", "/dev/null")
    for path in own_program():
        if _nearest(path, places) in unseen:
            put(path, "--ro-bind", path)
    protected = layout.protected_places()
    for path in protected:
        around = _nearest(path, places)
        if around not in ("", path) and places[around].option == "--ro-bind":
            continue  # It is protected with that, and a folder between the two must not be put there to be written.
        put(path, "--ro-bind", path)

    def is_open(path: str) -> bool:
        """Whether ``path`` can be written to by what is put above it."""
        nearest = _nearest(os.path.dirname(path), places)
        return places[nearest] == (nearest, "--bind", nearest) if nearest else "/" in writable

    for path in writable:
        # It can be written to anyway. A command that still runs could make it a link just before it is mounted.
        if path != "/" and places[path].option == "--bind" and is_open(path):
            del places[path]
    for path in (*hidden, *protected):
        # What something is mounted on cannot be renamed, so that nothing takes the place of a folder above it.
        while path in places and is_open(path) and (path := os.path.dirname(path)) not in places and path != "/":
            put(path, "--bind", path)
    yield from sorted(places.values(), key=lambda place: place.path.count("/") if place.path != "/" else 0)


def _nearest(path: str, places: dict[str, _Place]) -> str:
    """The innermost place that ``path`` is in, ``""`` if it is in none."""
    while path not in places:
        if path == "/":
            return ""
        path = os.path.dirname(path)
    return path


def _resolver() -> str:
    """The file that /etc/resolv.conf leads to, if that is in /run."""
    path = os.path.realpath("/etc/resolv.conf")
    return path if path.startswith("/run/") else ""
