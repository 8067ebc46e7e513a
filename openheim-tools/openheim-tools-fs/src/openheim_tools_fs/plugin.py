"""What stands at the entry point ``fs`` of group ``openheim.tools``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openheim import hookimpl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openheim import Tool

__all__ = ("openheim_tools",)


@hookimpl
def openheim_tools() -> Sequence[Tool]:
    from openheim_tools_fs.edit import edit_file
    from openheim_tools_fs.list_dir import list_dir
    from openheim_tools_fs.read import read_file
    from openheim_tools_fs.search import search
    from openheim_tools_fs.write import write_file

    return [read_file, write_file, edit_file, list_dir, search]
