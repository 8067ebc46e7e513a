"""The agent loop: call the model, run its tools, repeat."""

from __future__ import annotations

__all__ = ()
