"""What child processes may see of the environment: nothing that looks like a secret."""

from __future__ import annotations

import re
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
      ://[^/@\s:?\#]*:(?!\d*[/?\#])[^@\s]+@                                     # scheme://user:password@host
    | (?i:pass(?:word|wd|phrase)|accountkey|sharedaccess(?:key|signature)|client_?secret|access_?token)\s*=\s*[^\s;&,]
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
        | eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}
      )
    """,
    re.VERBOSE,
)


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
        and not _SECRET_VALUE.search(value)
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
