"""Keeps the secrets of a provider's entry out of texts that come from its service."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openheim.providers import ProviderSettings

__all__ = ("mask_secrets",)

#: What is masked as one: a single character, or backslashes in a row.
_RUNS = re.compile(r"\\+|[^\\]", re.DOTALL)


def mask_secrets(text: str, settings: ProviderSettings | None) -> str:
    """``text`` without the :attr:`~openheim.providers.ProviderSettings.secrets` of an entry, however they are escaped:
    as in JSON, also within another JSON text, and as in addresses."""
    for secret in settings.secrets if settings is not None else ():
        # Placeholders such as "x", which local servers are given, are no secrets and would tear up every message.
        if len(secret) >= 4:
            text = _escaped_form(secret).sub("***", text)
    return text


@lru_cache(maxsize=64)
def _escaped_form(secret: str) -> re.Pattern[str]:
    return re.compile("".join(_run_form(run[0], len(run[0])) for run in _RUNS.finditer(secret)))


def _run_form(run: str, size: int) -> str:
    """A pattern for one character, or for some backslashes: as they are, and as writers of JSON and of addresses may
    write them (RFC 8259, 7; RFC 3986, 2.1). JSON within JSON doubles the backslashes, up to three times here."""
    in_address = "".join(f"%{byte:02x}" for byte in run[0].encode("utf-8", "surrogatepass"))
    in_json = "".join(rf"\\{{1,8}}+u{unit.hex()}" for unit in _units(run[0]))
    if run[0] == "\\":
        return rf"(?:(?i:{in_json}|{in_address})|\\){{{size},{8 * size}}}"
    return rf"(?:\\{{0,8}}+{re.escape(run)}|(?i:{in_json}|{in_address}))"


def _units(character: str) -> list[bytes]:
    encoded = character.encode("utf-16-be", "surrogatepass")
    return [encoded[start : start + 2] for start in range(0, len(encoded), 2)]
