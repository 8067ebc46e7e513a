"""To be removed; see :mod:`openheim.jsontext`."""

from __future__ import annotations

from openheim.jsontext import dump_bytes, dump_text

__all__ = ("dump_bytes", "dump_text")
