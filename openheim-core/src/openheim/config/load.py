"""From files, environment and flags to one :class:`~openheim.config.models.Config`.

Values come in layers; a later layer wins key by key, tables are merged, everything else is replaced. A layer is a
nested dictionary with a name, so further layers (a project's file, a managed policy) are further entries of one list.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from openheim._jsonschema import problems, shown_path
from openheim.config.models import Config
from openheim.config.paths import config_file, home_dir
from openheim.config.schema import SCHEMA
from openheim.config.toml import read_toml
from openheim.errors import ConfigError

__all__ = ("Layer", "LoadedConfig", "environment_layer", "load_config", "merge_layers")

#: Variables that are no settings of the config file.
_NO_SETTINGS = frozenset(("HOME", "LOG", "PLUGINS", "PLUGINS_DISABLE", "TRACE_PLUGINS", "POLICY_FILE", "RELEASE"))


@dataclass(frozen=True, slots=True)
class Layer:
    """Settings from one source. ``name`` says which: ``user``, ``environment``, ``flags``."""

    name: str
    values: Mapping[str, Any]
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """The settings in force.

    Args:
        file: the user's config file, whether it exists or not.
        warnings: one line each, for a person.
    """

    config: Config
    file: Path
    layers: tuple[Layer, ...] = ()
    warnings: tuple[str, ...] = field(default=())

    @property
    def data_dir(self) -> Path:
        """Where history, skills and memory are kept."""
        named = self.config.data_dir
        return Path(named).expanduser().absolute() if named else home_dir()

    def work_dir(self, cwd: Path) -> Path:
        """The boundary of a session in ``cwd``: the configured one, else ``cwd`` itself; links resolved.

        Raises:
            ConfigError: it is no directory.
        """
        named = self.config.work_dir
        folder = cwd / named if named else cwd
        try:
            resolved = folder.resolve(strict=True)
        except OSError as err:
            raise ConfigError(
                f"the work directory {folder} cannot be used: {err.strerror or err}",
                hint="correct work_dir in the config" if named else "start in a directory that exists",
            ) from err
        if not resolved.is_dir():
            raise ConfigError(f"the work directory {folder} is not a directory", hint="name a directory")
        return resolved


def load_config(
    path: str | None = None,
    *,
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> LoadedConfig:
    """Reads and checks the settings.

    Args:
        path: a config file to read instead of the user's own; it must exist.
        flags: settings from the command line or the embedding program; they win over all.
        environment: variables to read, by default the process's.

    Raises:
        ConfigError: a file cannot be read, or a value is wrong; the message names file, line and key.
    """
    file = config_file(path)
    values = read_toml(file)
    if values is None and path is not None:
        raise ConfigError(f"there is no config file {file}", hint="check the path, or run openheim init")
    layers = [Layer("user", values or {}, file)]
    layers.append(environment_layer(os.environ if environment is None else environment))
    if flags:
        layers.append(Layer("flags", flags))
    return _checked(layers, file)


def environment_layer(environment: Mapping[str, str]) -> Layer:
    """Settings from ``OPENHEIM_<KEY>`` and ``OPENHEIM_<SECTION>__<KEY>``; names are lower-cased.

    A value that reads as a TOML number, boolean, array or table is taken as such, unless the setting is a text.
    """
    values: dict[str, Any] = {}
    for variable, text in sorted(environment.items()):
        name = variable.removeprefix("OPENHEIM_")
        if name == variable or name in _NO_SETTINGS or not text:
            continue
        *sections, key = name.lower().split("__")
        table = values
        for section in sections:
            table = table.setdefault(section, {})
            if not isinstance(table, dict):
                break
        else:
            table[key] = _setting(text, _schema_at([*sections, key]))
    return Layer("environment", values)


def _setting(text: str, schema: Mapping[str, Any] | None) -> Any:
    if schema is not None and schema.get("type") == "string":
        return text
    if text in ("true", "false") or text[:1] in "[{+-0123456789":
        import tomllib

        try:
            return tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            pass
    return text


def _schema_at(path: Sequence[str]) -> dict[str, Any] | None:
    """The schema of the setting at ``path``, or None if it is not known."""
    schema = SCHEMA
    for part in path:
        inner = schema.get("properties", {}).get(part) or schema.get("additionalProperties")
        if not isinstance(inner, dict):
            return None
        schema = inner
    return schema


def merge_layers(layers: Sequence[Layer]) -> dict[str, Any]:
    """The values of all layers, the last one winning."""
    merged: dict[str, Any] = {}
    for layer in layers:
        _merge(merged, layer.values)
    return merged


def _merge(into: dict[str, Any], values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        known = into.get(key)
        if isinstance(value, Mapping):
            if not isinstance(known, dict):
                known = into[key] = {}
            _merge(known, value)
        else:
            into[key] = value


def _checked(layers: list[Layer], file: Path) -> LoadedConfig:
    from openheim.plugins.policy import unknown_keys

    values = merge_layers(layers)
    for path, problem in problems(values, SCHEMA):
        where = _place(layers, path)
        raise ConfigError(f"{where}: {shown_path(path)} {problem}", hint="correct that setting")
    warnings = tuple(
        [warning for layer in layers for warning in _unknown_keys(layer)] + unknown_keys(values.get("plugins", {}))
    )
    return LoadedConfig(Config.from_values(values), file, tuple(layers), warnings)


def _place(layers: Sequence[Layer], path: Sequence[str | int]) -> str:
    """Where the value at ``path`` comes from: a file and line, a variable, or a layer's name."""
    keys = [part for part in path if isinstance(part, str)]
    for layer in reversed(layers):
        node: Any = layer.values
        for key in keys:
            if not isinstance(node, Mapping) or key not in node:
                break
            node = node[key]
        else:
            if layer.file is not None:
                from openheim.config.lines import line_of

                line = line_of(layer.file, keys)
                return f"{layer.file}, line {line}" if line else str(layer.file)
            if layer.name == "environment":
                return f"OPENHEIM_{'__'.join(keys).upper()}"
            return f"the {layer.name}"
    return "the config"


def _unknown_keys(layer: Layer) -> Iterator[str]:
    def unknown(schema: Mapping[str, Any], values: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
        known = schema.get("properties")
        if known is None:
            return
        for key, value in values.items():
            here = (*path, key)
            if key not in known:
                close = get_close_matches(key, list(known), 1)
                meant = f"; did you mean {close[0]}?" if close else ""
                yield f"{_place([layer], here)}: unknown setting {'.'.join(here)} is ignored{meant}"
            elif isinstance(value, Mapping):
                yield from unknown(known[key], value, here)

    return unknown(SCHEMA, layer.values, ())
