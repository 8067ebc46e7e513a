"""The runtime: sessions, their streams of events, their questions."""

from __future__ import annotations

from openheim.runtime.runtime import Runtime
from openheim.runtime.session import Session

__all__ = ("Runtime", "Session")
