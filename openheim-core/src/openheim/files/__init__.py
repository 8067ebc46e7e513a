"""Access to files that cannot leave a boundary.

:class:`Files` is the one way by which tools and surfaces touch the user's files. Each call walks from the boundary's
root through open directory handles, component by component, and follows symbolic links by hand; so what was checked is
what is used, whatever another process swaps in between. ``_boundary`` does the walking, ``_directory`` is one open
directory, ``_beneath`` the system call that takes many at a time, ``_folder`` is for walks through a whole tree,
``_replacing`` puts new content in place, by way of ``_unfinished``, ``_failures`` says what went wrong in words.
"""

from __future__ import annotations

from openheim.files._files import Entry, FileInfo, Files, Listing
from openheim.files._folder import FileKind, Folder
from openheim.files._replacing import FileChangedError, FileVersion

__all__ = ("Entry", "FileChangedError", "FileInfo", "FileKind", "FileVersion", "Files", "Folder", "Listing")
