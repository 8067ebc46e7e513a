"""Google's Gemini models as model providers and embeddings for openheim."""

from __future__ import annotations

__version__ = "0.1.0"
__all__ = ("__version__",)
