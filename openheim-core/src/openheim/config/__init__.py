"""Settings: where they are, how they are read, checked and changed."""

from __future__ import annotations

__all__ = ()
