"""The system text: who the agent is, and where it works."""

from __future__ import annotations

from openheim.prompt.assembly import DEFAULT_IDENTITY, read_identity, system_text

__all__ = ("DEFAULT_IDENTITY", "read_identity", "system_text")
