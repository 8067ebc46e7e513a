"""Settings from variables: ``OPENHEIM_<KEY>`` for a top-level key, ``OPENHEIM_<SECTION>__<KEY>`` for any other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim.config.findings import Finding, SettingError
from openheim.config.layers import Layer
from openheim.config.schema import schema_at, types_of
from openheim.config.toml import MAX_DEPTH, is_too_deep
from openheim.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ("environment_layer", "value_from_text", "variable_of")

_PREFIX = "OPENHEIM_"

#: Variables that are no settings of the config file.
_NO_SETTINGS = frozenset(
    ("COMMAND", "HOME", "LOG", "PLUGINS", "PLUGINS_DISABLE", "TRACE_PLUGINS", "POLICY_FILE", "RELEASE")
)

#: How TOML values other than texts begin, and the JSON types of those that settings are made of.
_STARTS = tuple("[{+-0123456789tf")
_KINDS = {bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


def environment_layer(environment: Mapping[str, str]) -> Layer:
    """The settings that variables make. Names are lower-cased; an empty variable counts as not set.

    Raises:
        SettingError: one is nested too deeply.
    """
    values: dict[str, Any] = {}
    for variable, text in sorted(environment.items()):
        name = variable.removeprefix(_PREFIX)
        if name == variable or name in _NO_SETTINGS or not text:
            continue
        *sections, key = name.lower().split("__")
        value = _value(text, (*sections, key))
        if value is None:
            shown = f"{variable[:80]}..." if len(variable) > 80 else variable
            raise SettingError(Finding("nested too deeply", source=shown, hint="make it flatter"))
        table = values
        for section in sections:
            table = table.setdefault(section, {})
            if not isinstance(table, dict):
                break
        else:
            table[key] = value
    return Layer("environment", values)


def _value(text: str, path: Sequence[str]) -> Any:
    """The value of the setting at ``path``, or None if that is nested too deeply."""
    try:
        return value_from_text(text, schema_at(path)) if len(path) <= MAX_DEPTH else None
    except UsageError:
        return None


def variable_of(path: Sequence[str]) -> str:
    """The variable that sets the key at ``path``."""
    return _PREFIX + "__".join(path).upper()


def value_from_text(text: str, schema: Mapping[str, Any] | None) -> Any:
    """A setting from the text of a variable or of a command's argument.

    A text that reads as a TOML number, boolean, array or table is taken as such where the setting may be one.

    Raises:
        UsageError: it is nested too deeply.
    """
    types = types_of(schema)
    if types == ("string",) or text[:1] not in _STARTS:
        return text
    import tomllib

    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except ValueError:  # no TOML, or an integer of thousands of digits
        return text
    except RecursionError:
        value = None
    if value is None or is_too_deep(value):
        raise UsageError("the value is nested too deeply", hint="make it flatter")
    kind = _KINDS.get(type(value))
    if kind is None or ("string" in types and kind not in types):
        return text
    return value
