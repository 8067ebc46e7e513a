"""What child processes may see of the environment: nothing that looks like a secret."""

from __future__ import annotations

import re
import string
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ("filtered_environment",)

#: Shorter values are no keys, and hiding every variable that holds one would hide nearly all.
MIN_SECRET_LENGTH = 4

# Parts of a variable's name, between underscores, that say its value is a secret, and ends of such parts.
_SECRET_PARTS = frozenset(
    "AUTH BEARER CONNSTR COOKIE CREDENTIAL CREDENTIALS DSN JWT PASS PASSPHRASE PASSWD PAT PRIVATE PW SECRETS "
    "WEBHOOK WEBHOOKS".split()
)
_SECRET_ENDS = ("KEY", "KEYS", "TOKEN", "TOKENS", "SECRET", "PASSWORD", "PWD", "CONNECTIONSTRING")
_SECRET_PHRASES = ("CONNECTION_STRING", "CONN_STR")

#: Two directories, and where an agent listens that lends signatures and keeps its keys.
_HARMLESS = frozenset(("PWD", "OLDPWD", "SSH_AUTH_SOCK"))

#: Values that are secrets, or hold one, whatever they are called.
_SECRET_VALUE = re.compile(
    r"""
      (?i:pass(?:word|wd|phrase)|accountkey|sharedaccess(?:key|signature)|client_?secret|access_?token)\s*=\s*[^\s;&,]
    | (?i:(?:^|[;\s])pwd\s*=\s*[^\s;&,])
    | (?i:hooks\.slack\.com/services/|discord(?:app)?\.com/api/webhooks/)       # whoever has the address may write
    | -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY
    | (?<![A-Za-z0-9])(?:                                                       # as services begin their keys
          sk[-_][A-Za-z0-9_-]{12,}
        | (?:[pr]k_live|gsk|hf|r8|npm|dop_v1|gh[oprsu]|github_pat)_[A-Za-z0-9_]{16,}
        | (?:xai|pplx|nvapi|glpat|pypi)-[A-Za-z0-9_-]{16,}
        | (?:xox[abceoprs]|xapp)-[A-Za-z0-9-]{8,}
        | A[KS]IA[A-Z0-9]{16}
        | AIza[A-Za-z0-9_-]{16,}
      )
    """,
    re.VERBOSE,
)

#: ``scheme://user:password@host`` from the scheme on, and not ``scheme://host:port/``.
_LOGIN = re.compile(r"://[^/\s:?#]*:(?!\d*[/?#])\S")
_BLANK = re.compile(r"\s")

#: A JSON Web Token: the head, a dot, and what comes after that.
_JWT_HEAD = re.compile(r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{8}")
_JWT_BODY = re.compile(r"[A-Za-z0-9_-]{4}")
_JWT_CHARACTERS = string.ascii_letters + string.digits + "_-"


def filtered_environment(
    environment: Mapping[str, str], *, hidden_names: Collection[str] = (), secrets: Collection[str] = ()
) -> dict[str, str]:
    """The variables that a child process may see: none that looks like a secret by its name or value, or holds one.

    Args:
        hidden_names: variables that must not be passed on in any case.
        secrets: values that must not be passed on under any name, nor as part of another value.
    """
    values = [secret for secret in secrets if len(secret) >= MIN_SECRET_LENGTH]
    return {
        name: value
        for name, value in environment.items()
        if name not in hidden_names
        and not _is_secret_name(name.upper())
        and not _is_secret_value(value)
        and not any(secret in value for secret in values)
    }


def _is_secret_name(name: str) -> bool:
    if name in _HARMLESS:
        return False
    parts = name.split("_")
    return (
        not _SECRET_PARTS.isdisjoint(parts)
        or any(part.endswith(_SECRET_ENDS) for part in parts)
        or any(phrase in name for phrase in _SECRET_PHRASES)
    )


def _is_secret_value(value: str) -> bool:
    return _SECRET_VALUE.search(value) is not None or _has_login(value) or _has_jwt(value)


# Both may begin anywhere in a long run of characters, and one pattern for the whole would look for the end of the run
# from each beginning again. From the end backwards, each character is looked at once, so that values may be long.


def _has_login(value: str) -> bool:
    return any(_LOGIN.search(_BLANK.split(before)[-1]) for before in value.split("@")[:-1])


def _has_jwt(value: str) -> bool:
    return any(
        _JWT_BODY.match(after) and _JWT_HEAD.search(before, len(before.rstrip(_JWT_CHARACTERS)))
        for before, after in pairwise(value.split("."))
    )
