"""From a path as somebody wrote it to an open directory inside the boundary and a name in it."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from openheim.errors import ToolError
from openheim.files._directory import Directory

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("Boundary", "Place")

#: Turns (links, and steps up inside their targets) that one path may take; Linux allows as many links.
MAX_TURNS = 40
#: Components of a path from which on taking its directories at one step is quicker than one by one.
MIN_JUMP = 4
#: Longest path and longest name in bytes that common systems take.
MAX_PATH_BYTES = 4096
MAX_NAME_BYTES = 255


@dataclass(slots=True, frozen=True)
class Place:
    """A name in an open directory.

    Args:
        directory: the directory; open as long as the block that gave the place.
        name: a single component, ``.`` for the root of the boundary itself. It need not exist.
        parts: the canonical path from the root, without links.
    """

    directory: Directory
    name: str
    parts: tuple[str, ...]


class Boundary:
    """A directory that paths cannot lead out of.

    Args:
        root: an existing directory, possibly given by way of links.
        cwd: where relative paths start; counts only if it is a directory inside ``root``, else ``root`` is taken.

    Raises:
        ToolError: ``root`` is no directory.
    """

    def __init__(self, root: Path, cwd: Path | None = None) -> None:
        given = os.path.abspath(root)
        real = os.path.realpath(given)
        if not os.path.isdir(real):
            raise ToolError(f"the work directory {str(root)!r} is not a directory")
        self.root = Path(real)
        # A path may name the root by either spelling.
        self._spellings = tuple(dict.fromkeys((real, given)))
        self.cwd = self.root
        if cwd is not None:
            inside = self.below_root(os.path.realpath(cwd))
            if inside is not None and os.path.isdir(cwd):
                self.cwd = self.root.joinpath(*inside)

    def parts(self, path: str) -> tuple[str, ...]:
        """The components of a path below the root, without looking at the disk: ``link/../x`` is ``x``.

        Raises:
            ToolError: the path leads out of the boundary, or is no path at all.
        """
        if not path.strip():
            raise ToolError("the path is empty")
        if "\0" in path:
            raise ToolError("the path contains a NUL character")
        try:
            size = len(os.fsencode(path))
        except UnicodeEncodeError as err:
            raise ToolError("the path contains characters that no file name can have") from err
        if size > MAX_PATH_BYTES:
            raise ToolError(f"the path is too long: {size} bytes, and at most {MAX_PATH_BYTES} are possible")
        expanded = os.path.expanduser(path) if path == "~" or path.startswith("~/") else path
        absolute = os.path.normpath(os.path.join(self.cwd, expanded))
        if absolute.startswith("//"):  # normpath keeps two leading slashes, which POSIX leaves to the system.
            absolute = absolute[1:]
        parts = self.below_root(absolute)
        if parts is None:
            # Another way to write a place inside: through a link that stands outside.
            parts = self.below_root(os.path.realpath(absolute))
        if parts is None:
            raise self.outside(path)
        for name in parts:
            if len(os.fsencode(name)) > MAX_NAME_BYTES:
                raise ToolError(f"the name {name[:40]!r}... is too long: at most {MAX_NAME_BYTES} bytes are possible")
        return parts

    @contextmanager
    def place(self, path: str, *, follow_last: bool = True, make_parents: bool = False) -> Iterator[Place]:
        """Walks to a path and holds its parent directory open for the block.

        Args:
            path: as somebody wrote it, relative to ``cwd`` or absolute.
            follow_last: whether a link in last place stands for what it points to, or for itself.
            make_parents: whether missing directories are made.

        Raises:
            ToolError: the path leads out of the boundary, or through a broken link.
            OSError: a directory on the way is missing or may not be entered.
        """
        walk = _Walk(self, path)
        try:
            yield walk.to_end(follow_last=follow_last, make_parents=make_parents)
        finally:
            walk.here.close()

    def resolve(self, path: str) -> tuple[str, ...]:
        """The canonical components of a path below the root: links followed as far as there is something.

        Raises:
            ToolError: as :meth:`place`.
            OSError: a directory on the way may not be entered.
        """
        walk = _Walk(self, path)
        try:
            return walk.to_end(follow_last=True, make_parents=False).parts
        except FileNotFoundError:
            return (*walk.done, *walk.todo)
        finally:
            walk.here.close()

    def open_root(self) -> Directory:
        try:
            return Directory.open(str(self.root))
        except OSError as err:
            raise ToolError(f"the work directory {str(self.root)!r} cannot be opened: {err.strerror}") from err

    def outside(self, path: str, why: str = "") -> ToolError:
        return ToolError(f"path {path!r} is outside the work directory {str(self.root)!r}{why}")

    def below_root(self, absolute: str) -> tuple[str, ...] | None:
        """The components of an absolute path below the root, by spelling alone; None if it is not below it."""
        compared = os.path.normcase(absolute)
        for spelling in self._spellings:
            prefix = os.path.normcase(spelling)
            if compared == prefix:
                return ()
            if compared.startswith(prefix if prefix.endswith(os.sep) else prefix + os.sep):
                return tuple(components(absolute[len(spelling) :]))
        return None


class _Walk:
    """One way from the root. ``here`` is the open directory at ``done``; ``todo`` is what is still to go."""

    def __init__(self, boundary: Boundary, path: str) -> None:
        self.done: list[str] = []
        self.todo = list(boundary.parts(path))
        self.here = boundary.open_root()
        self._boundary = boundary
        self._path = path
        self._turns = 0
        # Whether to try to take all directories at one step; once that failed, something is in the way.
        self._may_jump = True
        # How much of ``todo`` is the caller's own; what stands before it came from a link.
        self._own = len(self.todo)

    def to_end(self, *, follow_last: bool, make_parents: bool) -> Place:
        while self.todo:
            name = self.todo[0]
            if self._may_jump and len(self.todo) >= MIN_JUMP:
                self._jump()
            elif name == "..":
                self._up()
            elif len(self.todo) > 1:
                self._enter(name, make_parents)
            else:
                target = self._last_link(name) if follow_last else None
                if target is None:
                    return Place(self.here, name, (*self.done, name))
                self._follow(target)
        return Place(self.here, ".", tuple(self.done))

    def _jump(self) -> None:
        """Takes all directories at one step, if the system can and no link is among them."""
        self._may_jump = False
        names = self.todo[:-1]
        inner = self.here.enter_all(names) if ".." not in names else None
        if inner is not None:
            self._step_into(inner, len(names))

    def _step_into(self, inner: Directory, count: int) -> None:
        self.here.close()
        self.here = inner
        self.done += self.todo[:count]
        del self.todo[:count]
        self._own = min(self._own, len(self.todo))

    def _enter(self, name: str, make_parents: bool) -> None:
        try:
            inner = self._open_or_make(name, make_parents)
        except OSError as err:
            if err.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            target = self.here.link_target(name)
            if target is None:
                raise
            self._follow(target)
            return
        self._step_into(inner, 1)

    def _open_or_make(self, name: str, make: bool) -> Directory:
        try:
            return self.here.enter(name)
        except FileNotFoundError:
            self._refuse_broken_link()
            if not make:
                raise
        self.here.make(name)
        return self.here.enter(name)

    def _last_link(self, name: str) -> str | None:
        try:
            return self.here.link_target(name)
        except FileNotFoundError:
            self._refuse_broken_link()
            return None

    def _follow(self, target: str) -> None:
        rest = self.todo[1:]
        self._own = min(self._own, len(rest))
        if os.path.isabs(target):
            parts = self._boundary.below_root(target) or self._boundary.below_root(os.path.realpath(target))
            if parts is None:
                raise self._leads_out(target)
            self._restart([*parts, *rest])
            return
        head, tail = list(self.done), components(target)
        while head and tail and tail[0] == "..":
            head.pop()
            del tail[0]
        self._restart([*head, *tail, *rest])

    def _up(self) -> None:
        """Takes a ``..`` in a link's target; the caller's own were taken before the walk."""
        if self.done:
            self._restart([*self.done[:-1], *self.todo[1:]])
            return
        # Up from the root. The target may still come back inside.
        ahead = len(self.todo) - self._own
        target = os.path.join(self._boundary.root, *self.todo[:ahead])
        parts = self._boundary.below_root(os.path.realpath(target))
        if parts is None:
            raise self._leads_out(target)
        self._restart([*parts, *self.todo[ahead:]])

    def _restart(self, todo: list[str]) -> None:
        self._turns += 1
        if self._turns > MAX_TURNS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        self.here.close()
        self.here = self._boundary.open_root()
        self.done = []
        self.todo = todo
        self._may_jump = True

    def _leads_out(self, target: str) -> ToolError:
        return self._boundary.outside(self._path, f": a symbolic link leads to {os.path.normpath(target)!r}")

    def _refuse_broken_link(self) -> None:
        if len(self.todo) > self._own:
            raise ToolError(f"{self._path!r} leads through a broken symbolic link")


def components(path: str) -> list[str]:
    return [name for name in path.split(os.sep) if name not in ("", ".")]
