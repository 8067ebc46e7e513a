"""Which headers carry a credential. By their names: services have made up many, and all of them say it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ("credential_headers", "secrets_in_headers")

_CREDENTIAL = re.compile(
    r"(?:^|-)(?:auth|authorization|authentication|apikey|(?<!idempotency-)(?<!cache-)key|\w*token|secret|password|passwd"
    r"|cookie2?|credentials?|signature|jwt|bearer)(?:-|$)"
)

#: What separates a secret from what stands around it: ``Bearer SECRET``, ``session=SECRET; theme=dark``.
_BETWEEN = re.compile(r"[\s;,=\"']+")
#: Parts that are shorter are words such as ``Bearer`` and ``dark``.
_LEAST_PART = 8


def credential_headers(names: Iterable[str]) -> list[str]:
    """Those of the names that are a credential's, such as ``authorization``, ``x-api-key`` and ``cookie``.

    Args:
        names: in any case; ``_`` counts as ``-``.
    """
    return [name for name in names if _CREDENTIAL.search(name.lower().replace("_", "-"))]


def secrets_in_headers(headers: Mapping[str, str]) -> list[str]:
    """What must not be shown of headers: values of those that carry a credential, or that look like a key.

    A value that holds more than the secret is in it whole, and its parts are too, for whoever repeats one may leave out
    ``Bearer``, or decode what follows ``Basic`` (RFC 7617).
    """
    from openheim.config.masking import is_secret_name, without_keys

    found: dict[str, None] = {}
    for name, value in headers.items():
        if credential_headers((name,)) or is_secret_name(name) or without_keys(value) != value:
            parts = (part for part in _BETWEEN.split(value) if len(part) >= _LEAST_PART)
            found |= dict.fromkeys((value, *parts, *_basic_secrets(value)))
    return list(found)


def _basic_secrets(value: str) -> list[str]:
    """User and password together, and the password."""
    scheme, _, encoded = value.partition(" ")
    if scheme.lower() != "basic":
        return []
    from base64 import b64decode

    try:
        both = b64decode(encoded.strip(), validate=True).decode()
    except ValueError:
        return []
    return [both, both.partition(":")[2]]
