"""The file tools of openheim: read_file, write_file, edit_file, list_dir and search."""

from __future__ import annotations

__version__ = "0.1.0"

__all__ = ("__version__",)
