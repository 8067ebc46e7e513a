"""What child processes may see of the environment: nothing that looks like a secret."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

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

_GIT_SETTINGS = ("GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_")

#: Values that are secrets, or hold one, whatever they are called.
_SECRET_VALUE = re.compile(
    r"""
      # No repetition is without a bound: values may be long, and made to take long.
      ://[^/@\s:?\#]{0,256}:(?!\d{0,8}[/?\#])[^@\s]{1,512}@                     # scheme://user:password@host
    | (?i:authorization\s{0,8}[:=]\s{0,8}\S|(?<![a-z])(?:bearer|basic)\s{1,8}[a-z0-9+/=._~-]{8}|_authtoken=)
    | (?i:(?:pass(?:word|wd|phrase)|accountkey|sharedaccess(?:key|signature)|client_?secret|access_?token)
          \s{0,8}=\s{0,8}[^\s;&,])
    | (?i:(?:^|[;\s])pwd\s{0,8}=\s{0,8}[^\s;&,])
    | (?i:hooks\.slack\.com/services/|discord(?:app)?\.com/api/webhooks/)       # whoever has the address may write
    | -----BEGIN\ [A-Z\ ]{0,40}PRIVATE\ KEY
    | (?<![A-Za-z0-9])(?:                                                       # as services begin their keys
          sk[-_][A-Za-z0-9_-]{12}
        | (?:[pr]k_(?:live|test)|gsk|hf|r8|npm|dop_v1|gh[oprsu]|github_pat)_[A-Za-z0-9_]{16}
        | (?:xai|pplx|nvapi|glpat|pypi)-[A-Za-z0-9_-]{16}
        | (?:xox[abceoprs]|xapp)-[A-Za-z0-9-]{8}
        | A[KS]IA[A-Z0-9]{16}
        | AIza[A-Za-z0-9_-]{16}
        | hvs\.[A-Za-z0-9_-]{16}
        | eyJ[A-Za-z0-9_-]{8,512}\.[A-Za-z0-9_-]{4}
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

    def may_pass(name: str, value: str) -> bool:
        return (
            name not in hidden_names
            and not _is_secret_name(name.upper())
            and not _SECRET_VALUE.search(value)
            and not any(secret in value for secret in values)
        )

    passed = {
        name: value
        for name, value in environment.items()
        if not name.startswith(_GIT_SETTINGS) and may_pass(name, value)
    }
    return passed | _git_settings(environment, may_pass)


def _git_settings(environment: Mapping[str, str], may_pass: Callable[[str, str], bool]) -> dict[str, str]:
    """Settings of git that stand in numbered pairs of variables, those that may pass numbered anew: git refuses to do
    anything once one of a pair is missing. See git-config(1), ``GIT_CONFIG_COUNT``."""
    count = environment.get("GIT_CONFIG_COUNT", "")
    pairs = []
    for number in range(int(count) if count.isascii() and count.isdigit() and len(count) < 4 else 0):
        key, value = (environment.get(f"GIT_CONFIG_{part}_{number}") for part in ("KEY", "VALUE"))
        name = (key or "").rpartition(".")[2]
        if key is not None and value is not None and name.lower() != "extraheader" and may_pass(name, value):
            pairs.append((key, value))
    if not pairs:
        return {}
    numbered = {"GIT_CONFIG_COUNT": str(len(pairs))}
    for number, (key, value) in enumerate(pairs):
        numbered |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return numbered


def _is_secret_name(name: str) -> bool:
    if name in _HARMLESS:
        return False
    parts = name.split("_")
    return (
        not _SECRET_PARTS.isdisjoint(parts)
        or any(part.endswith(_SECRET_ENDS) for part in parts)
        or any(phrase in name for phrase in _SECRET_PHRASES)
    )
