"""From files, environment and flags to one :class:`~openheim.config.models.Config`.

Values come in layers; a later layer wins key by key, tables are merged, everything else is replaced. A layer is a
nested dictionary with a name, so further layers (a project's file, a managed policy) are further entries of one list.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from openheim._jsonschema import problems, shown_path
from openheim.config.layers import Layer, merge_layers, place_of
from openheim.config.models import Config
from openheim.config.paths import absolute_path, checked_path, config_file, expanded_path, home_dir, start_directory
from openheim.config.schema import SCHEMA
from openheim.config.toml import is_too_deep, read_toml
from openheim.errors import ConfigError, UsageError

__all__ = ("LoadedConfig", "environment_layer", "load_config")

#: Variables that are no settings of the config file.
_NO_SETTINGS = frozenset(("HOME", "LOG", "PLUGINS", "PLUGINS_DISABLE", "TRACE_PLUGINS", "POLICY_FILE", "RELEASE"))


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """The settings in force.

    Args:
        file: the user's config file, whether it exists or not.
        warnings: one line each, for a person.
        start: the directory that the process was in when the settings were read, or None if it was gone. Relative
            paths count from it, wherever a session or a program goes later.
    """

    config: Config
    file: Path
    layers: tuple[Layer, ...] = ()
    warnings: tuple[str, ...] = field(default=())
    start: Path | None = field(default_factory=start_directory)

    @property
    def data_dir(self) -> Path:
        """Where history, skills and memory are kept.

        Raises:
            ConfigError: no home folder is known, or the current directory was gone and the path is relative.
        """
        named = self.config.data_dir
        return absolute_path(expanded_path(named, "data_dir"), self.start) if named else home_dir(self.start)

    def work_dir(self, cwd: Path) -> Path:
        """The boundary of a session in ``cwd``: the configured one, else ``cwd`` itself; links resolved.

        Raises:
            ConfigError: it is no directory.
        """
        named = self.config.work_dir
        folder = absolute_path(Path(named), self.start) if named else cwd
        try:
            resolved = folder.resolve(strict=True)
        except (OSError, RuntimeError, ValueError) as err:  # until Python 3.12, circles of links are a RuntimeError
            raise ConfigError(
                f"the work directory {folder} cannot be used: {getattr(err, 'strerror', None) or err}",
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

    Raises:
        ConfigError: a value is nested too deeply.
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
            try:
                table[key] = _setting(text, _schema_at([*sections, key]))
            except RecursionError:
                raise ConfigError(f"{variable} is nested too deeply", hint="make it flatter") from None
    return Layer("environment", values)


def _setting(text: str, schema: Mapping[str, Any] | None) -> Any:
    if schema is not None and schema.get("type") == "string":
        return text
    if text in ("true", "false") or text[:1] in "[{+-0123456789":
        import tomllib

        try:
            return tomllib.loads(f"value = {text}")["value"]
        except ValueError:
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


def _checked(layers: list[Layer], file: Path) -> LoadedConfig:
    from openheim.plugins.policy import unknown_keys

    for layer in layers:
        if is_too_deep(layer.values):
            raise ConfigError(f"the settings from the {layer.name} are nested too deeply", hint="make them flatter")
    values = merge_layers(layers)
    for path, problem in problems(values, SCHEMA):
        raise ConfigError(f"{_where(layers, path)} {problem}", hint="correct that setting")
    config = Config.from_values(values, partial(place_of, layers))
    _check_paths(layers, config)
    _check_rules(layers, config)
    _check_proxy(layers, config)
    warnings = tuple(
        [warning for layer in layers for warning in _unknown_keys(layer)] + unknown_keys(values.get("plugins", {}))
    )
    return LoadedConfig(config, file, tuple(layers), warnings)


def _where(layers: Sequence[Layer], path: tuple[str | int, ...]) -> str:
    """How an error about a value begins: where it was given, and its name."""
    place = place_of(layers, path)
    return f"{place}: {shown_path(path)}" if place is not None else shown_path(path)


def _check_paths(layers: Sequence[Layer], config: Config) -> None:
    if config.work_dir:
        checked_path(config.work_dir, _where(layers, ("work_dir",)))
    if config.data_dir:
        expanded_path(config.data_dir, _where(layers, ("data_dir",)))
    if config.http.ca_file:
        expanded_path(config.http.ca_file, _where(layers, ("http", "ca_file")))


def _check_rules(layers: Sequence[Layer], config: Config) -> None:
    for key in ("allow", "deny"):
        for index, text in enumerate(getattr(config.permissions, key)):
            from openheim.permissions.rules import parse_rule

            try:
                parse_rule(text)
            except UsageError as err:
                where = _where(layers, ("permissions", key, index))
                raise ConfigError(f"{where}: {err.message}", hint=err.hint) from err


def _check_proxy(layers: Sequence[Layer], config: Config) -> None:
    if config.http.proxy:
        from openheim._proxies import checked_proxy

        checked_proxy(config.http.proxy, _where(layers, ("http", "proxy")))


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
                yield f"{place_of([layer], here)}: unknown setting {'.'.join(here)} is ignored{meant}"
            elif isinstance(value, Mapping):
                yield from unknown(known[key], value, here)

    return unknown(SCHEMA, layer.values, ())
