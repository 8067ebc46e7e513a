"""What is shown of settings that hold secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ("MASK", "is_secret_name", "masked", "without_credentials", "without_keys")

MASK = "***"

# ``token_file`` and ``access_key_id`` name a place or a thing, ``max_tokens`` a number of them.
_SECRET = re.compile(
    r"(?:^|[_-])keys?(?:$|[_-])|api[_-]?key|secret|token(?!s)|pass(?:word|wd|phrase)|credential|authori[sz]ation|cookie",
    re.IGNORECASE,
)
_PLACE = re.compile(r"[_-](?:file|path|dir|var|env|name|id|secs|bytes)$", re.IGNORECASE)

#: Tables whose values are secrets as often as not.
_SECRET_TABLES = frozenset(("env", "headers", "extra_headers"))

#: Sections whose keys are names that somebody chose.
_NAMED = frozenset(("providers", "tools", "transports", "gates", "mcp_servers"))

_URL = re.compile(r"(?P<scheme>[A-Za-z][\w+.-]*://)?(?:[^/?#\s]*@)?(?P<rest>[^?#\s]*)(?P<query>[?#]\S*)?")

#: How keys look: by the beginnings that vendors give them, or as one long run of letters and digits.
_KEY = re.compile(
    r"""(?<![A-Za-z0-9])(?:
        sk-[A-Za-z0-9_-]{6,}
      | (?:pk|rk|gsk|xai|pplx|nvapi|hf|r8|gh[oprsu]|github_pat|glpat|xox[abeprs])[-_][A-Za-z0-9_-]*[A-Za-z0-9]{16,}
      | AIza[A-Za-z0-9_-]{16,}
      | eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_.-]+
      | (?=[a-zA-Z]*[0-9])(?=[0-9]*[a-zA-Z])[A-Za-z0-9]{24,}
    )""",
    re.VERBOSE,
)

#: Where a key is, and not the key.
_REFERENCE = frozenset(("env", "file", "keyring"))


def is_secret_name(key: str) -> bool:
    """Whether a setting of this name usually holds a secret."""
    return bool(_SECRET.search(key)) and not _PLACE.search(key)


def masked(path: Sequence[str], value: Any) -> Any:
    """What may be shown of the setting at ``path``: numbers and places as they are, secrets as :data:`MASK`."""
    if isinstance(value, Mapping):
        return {key: masked((*path, key), inner) for key, inner in value.items()}
    if path[:1] == ("mcp_servers",) and path[2:] == ("args",) and isinstance(value, list | tuple):
        return f"{len(value)} argument{'' if len(value) == 1 else 's'}"
    if isinstance(value, list | tuple):
        return [masked(path, item) for item in value]
    if not isinstance(value, str) or not value:
        return value
    section, *keys = path
    if section in _NAMED:
        del keys[:1]
    if section == "providers" and keys[:-1] == ["api_key"] and keys[-1] in _REFERENCE:
        return value
    if any(key in _SECRET_TABLES for key in keys[:-1]) or any(map(is_secret_name, keys)):
        return MASK
    return MASK if _KEY.fullmatch(value) else without_credentials(value)


def without_credentials(text: str) -> str:
    """The text; of a URL, or of ``user:password@host``, only what holds no user, password, query or fragment."""
    found = _URL.fullmatch(text)
    if found is None or not (found["scheme"] or ("@" in text and ":" in text.partition("@")[0])):
        return text
    return (found["scheme"] or "") + found["rest"]


def without_keys(text: str) -> str:
    """The text, fit for a message that repeats a setting: a key is often put where something else should stand."""
    return _KEY.sub(MASK, text)
