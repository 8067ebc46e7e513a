"""Which headers carry a credential; see :mod:`openheim.headers`."""

from __future__ import annotations

from openheim.headers import credential_headers

__all__ = ("credential_headers",)
