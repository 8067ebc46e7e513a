"""The demo provider of openheim: a rule-based planner instead of a language model."""

from __future__ import annotations

__version__ = "0.1.0"

__all__ = ("__version__",)
