"""Where a provider's key comes from: a variable, a file, the system's keyring, or the settings themselves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from openheim.config.rules import KEY_VARIABLES, kind_of
from openheim.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openheim.config.models import ProviderEntry

__all__ = ("KEYRING_SERVICE", "find_key", "key_variable")

#: Under which name keys are kept in the keyring: ``keyring set openheim NAME``.
KEYRING_SERVICE = "openheim"

#: Longest key that is taken from a file.
_MAX_KEY_BYTES = 64 * 1024


def key_variable(name: str, entry: ProviderEntry) -> str:
    """The variable that is looked for the key of an entry, or ``""``.

    A vendor's usual one counts for the vendor's own address only, so that its key is sent nowhere else unless the
    entry asks for it by name.
    """
    if entry.env_var:
        return entry.env_var
    return KEY_VARIABLES.get(kind_of(name, entry), "") if entry.api_base is None else ""


def find_key(name: str, entry: ProviderEntry, environment: Mapping[str, str]) -> str:
    """The key of a provider entry, or ``""`` if it has none.

    A variable that is set wins, then ``api_key``, then ``api_key_file``.

    Raises:
        ConfigError: the place that is named for the key holds none, or what it holds is no key.
    """
    where = f"provider {name!r}"
    variable = key_variable(name, entry)
    key = environment.get(variable, "").strip() if variable else ""
    if not key and entry.api_key is not None:
        given = entry.api_key
        key = given.strip() if isinstance(given, str) else _referred(given, environment, where)
    if not key and entry.api_key_file:
        key = _from_file(entry.api_key_file, f"api_key_file of {where}")
    if not key and entry.env_var:
        raise ConfigError(
            f"{where} has no key: the variable {entry.env_var} is not set",
            hint=f"set {entry.env_var}, or take env_var out of [providers.{name}] if no key is needed",
        )
    if not key.isascii() or not all(map(str.isprintable, key)):
        raise ConfigError(
            f"the key of {where} holds a line break or a character that no key has", hint="copy the key anew"
        )
    return key


def _referred(place: Mapping[str, str], environment: Mapping[str, str], where: str) -> str:
    if "env" in place:
        key = environment.get(place["env"], "").strip()
        if not key:
            raise ConfigError(f"{where} has no key: the variable {place['env']} is not set", hint=f"set {place['env']}")
        return key
    if "file" in place:
        return _from_file(place["file"], f"the key file of {where}")
    return _from_keyring(place["keyring"], where)


def _from_file(name: str, what: str) -> str:
    try:
        with Path(name).expanduser().open("rb") as file:
            key = file.read(_MAX_KEY_BYTES).decode("utf-8-sig").strip()
    except (OSError, UnicodeDecodeError, RuntimeError) as err:
        reason = err.strerror if isinstance(err, OSError) else "not UTF-8"
        raise ConfigError(f"cannot read {what}: {reason}", hint="check path and permissions") from err
    if not key:
        raise ConfigError(f"{what} is empty", hint="write the key into it")
    return key


def _from_keyring(name: str, where: str) -> str:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError as err:
        raise ConfigError(
            f"the key of {where} is in the keyring, and the keyring package is not installed",
            hint="pip install 'openheim-core[keyring]'",
        ) from err
    try:
        key = keyring.get_password(KEYRING_SERVICE, name)
    except KeyringError as err:
        # Its own text may be anything, so only its kind is told.
        raise ConfigError(
            f"the keyring cannot be read for {where}: {type(err).__name__}",
            hint="unlock it, or keep the key in a variable or a file",
        ) from err
    if not key or not key.strip():
        raise ConfigError(
            f"the keyring holds no key {name!r} of service {KEYRING_SERVICE}, which {where} needs",
            hint=f"keyring set {KEYRING_SERVICE} {name}",
        )
    return key.strip()
