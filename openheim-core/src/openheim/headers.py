"""Which headers carry a credential. By their names: services have made up many, and all of them say it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("credential_headers",)

_CREDENTIAL = re.compile(
    r"(?:^|-)(?:auth|authorization|authentication|apikey|(?<!idempotency-)(?<!cache-)key|\w*token|secret|password|passwd"
    r"|cookie2?|credentials?|signature|jwt|bearer)(?:-|$)"
)


def credential_headers(names: Iterable[str]) -> list[str]:
    """Those of the names that are a credential's, such as ``authorization``, ``x-api-key`` and ``cookie``.

    Args:
        names: in any case; ``_`` counts as ``-``.
    """
    return [name for name in names if _CREDENTIAL.search(name.lower().replace("_", "-"))]
