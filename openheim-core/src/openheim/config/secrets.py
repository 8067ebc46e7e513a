"""Where a provider's key comes from: a variable, a file, the system's keyring, or the settings themselves."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from openheim._reading import read_given
from openheim.config.paths import absolute_path, expanded_path
from openheim.config.rules import KEY_VARIABLES, kind_of
from openheim.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from openheim.config.models import Config, ProviderEntry

__all__ = ("KEYRING_SERVICE", "UnusableKey", "find_key", "key_files", "key_variable", "require_keyring")

#: Under which name keys are kept in the keyring: ``keyring set openheim NAME``.
KEYRING_SERVICE = "openheim"

#: Bytes read of a file that holds a key.
_MAX_KEY_BYTES = 64 * 1024


def key_variable(name: str, entry: ProviderEntry) -> str:
    """The variable that is looked for the key of an entry, or ``""``.

    A vendor's usual one counts for the vendor's own address only, so that its key is sent nowhere else unless the
    entry asks for it by name.
    """
    if entry.env_var:
        return entry.env_var
    return KEY_VARIABLES.get(kind_of(name, entry), "") if entry.api_base is None else ""


class UnusableKey(ConfigError):
    """A provider's key is not where its entry says, or what is there is no key.

    ``setting`` is the setting to look at, within the entry; empty where the fault is not in the settings.
    """

    def __init__(self, message: str, *setting: str, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.setting = setting


def find_key(name: str, entry: ProviderEntry, environment: Mapping[str, str]) -> str:
    """The key of a provider entry, or ``""`` if it has none.

    A variable that is set wins, then ``api_key``, then ``api_key_file``: a key that the environment or a call gives for
    ``api_key`` has to win over a file that the user's settings name.

    Raises:
        UnusableKey: the place that is named for the key holds none, or what it holds is no key. It is a
            ``ConfigError``, and never quotes the key.
    """
    where = f"provider {name!r}"
    key, source, setting = _found_key(name, entry, environment)
    if not key and entry.env_var:
        from openheim.config.masking import without_keys

        variable = without_keys(entry.env_var)
        raise UnusableKey(
            f"{where} has no key: the variable {variable} is not set",
            hint=f"set {variable}, or take env_var out of [providers.{name}] if no key is needed",
        )
    if not key.isascii() or not key.isprintable():
        raise UnusableKey(
            f"the key of {where}, from {source}, holds a line break or a character that no key has",
            *setting,
            hint="keys are plain ASCII on one line: copy the key anew",
        )
    return key


def _found_key(name: str, entry: ProviderEntry, environment: Mapping[str, str]) -> tuple[str, str, tuple[str, ...]]:
    """The key or ``""``, where it comes from, and the setting that it or its place stands in, if that is at fault."""
    where = f"provider {name!r}"
    variable = key_variable(name, entry)
    if variable and (key := environment.get(variable, "").strip()):
        return key, variable, ()
    given = entry.api_key
    if isinstance(given, str) and given.strip():
        return given.strip(), "api_key", ("api_key",)
    if given is not None and not isinstance(given, str):
        return _referred(given, environment, where)
    if entry.api_key_file:
        setting = ("api_key_file",)
        return _from_file(entry.api_key_file, f"api_key_file of {where}", setting), "api_key_file", setting
    return "", "", ()


def _referred(place: Mapping[str, str], environment: Mapping[str, str], where: str) -> tuple[str, str, tuple[str, ...]]:
    if "env" in place:
        variable = place["env"]
        key = environment.get(variable, "").strip()
        if not key:
            from openheim.config.masking import without_keys

            shown = without_keys(variable)
            raise UnusableKey(f"{where} has no key: the variable {shown} is not set", hint=f"set {shown}")
        return key, variable, ()
    if "file" in place:
        setting = ("api_key", "file")
        return _from_file(place["file"], f"the key file of {where}", setting), "its file", setting
    return _from_keyring(place["keyring"], where), "the keyring", ()


def key_files(config: Config, start: Path | None) -> list[Path]:
    """The files that keys are read from, without those whose names make no sense here.

    Args:
        start: what relative names count from.
    """
    found: list[Path] = []
    for entry in config.providers.values():
        named = [entry.api_key_file]
        if isinstance(entry.api_key, Mapping):
            named.append(entry.api_key.get("file"))
        for name in named:
            if name:
                with suppress(ConfigError):
                    found.append(absolute_path(expanded_path(name, "a key file"), start))
    return found


def _from_file(name: str, what: str, setting: tuple[str, ...]) -> str:
    try:
        path = expanded_path(name, what)
    except ConfigError as err:
        raise UnusableKey(err.message, *setting, hint=err.hint) from err
    try:
        # With a byte-order mark, which some editors write unasked. Programs that keep keys offer them in pipes.
        key = read_given(path, limit=_MAX_KEY_BYTES).decode("utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as err:
        if isinstance(err, OSError) and err.errno == errno.EFBIG:
            raise UnusableKey(
                f"{what} is too long for a key", *setting, hint="name the file that holds the key alone"
            ) from err
        reason = err.strerror if isinstance(err, OSError) else "not UTF-8"
        raise UnusableKey(f"cannot read {what}: {reason}", *setting, hint="check path and permissions") from err
    if not key:
        raise UnusableKey(f"{what} is empty", *setting, hint="write the key into it")
    return key


def require_keyring(name: str) -> None:
    """Raises :class:`UnusableKey` if the provider ``name`` needs the keyring and its package is not installed.

    The keyring itself is not looked into.
    """
    from importlib.util import find_spec

    try:
        found = find_spec("keyring")
    except ValueError:
        found = None
    if found is None:
        raise _no_keyring(f"provider {name!r}")


def _no_keyring(where: str) -> UnusableKey:
    return UnusableKey(
        f"the key of {where} is in the keyring, and the keyring package is not installed",
        hint="pip install 'openheim-core[keyring]'",
    )


def _from_keyring(name: str, where: str) -> str:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError as err:
        raise _no_keyring(where) from err
    try:
        key = keyring.get_password(KEYRING_SERVICE, name)
    except KeyringError as err:
        # Its own text may be anything, so only its kind is told.
        raise UnusableKey(
            f"the keyring cannot be read for {where}: {type(err).__name__}",
            hint="unlock it, or keep the key in a variable or a file",
        ) from err
    if not key or not key.strip():
        from openheim.config.masking import without_keys

        name = without_keys(name)
        raise UnusableKey(
            f"the keyring holds no key {name!r} of service {KEYRING_SERVICE}, which {where} needs",
            hint=f"keyring set {KEYRING_SERVICE} {name}",
        )
    return key.strip()
