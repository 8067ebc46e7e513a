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
from typing import TYPE_CHECKING, Any

from openheim.config.paths import config_file, home_dir
from openheim.config.toml import read_toml
from openheim.errors import ConfigError

if TYPE_CHECKING:
    from openheim.config.models import Config

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

    A value that reads as a TOML number, boolean, array or table is taken as such, any other as text.
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
            table[key] = _toml_value(text)
    return Layer("environment", values)


def _toml_value(text: str) -> Any:
    if text in ("true", "false") or text[:1] in "[{+-0123456789":
        import tomllib

        try:
            return tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            pass
    return text


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
    from pydantic import ValidationError

    from openheim.config.models import Config

    try:
        config = Config.model_validate(merge_layers(layers))
    except ValidationError as err:
        raise _config_error(err, layers) from err
    warnings = tuple(_unknown_keys(layers))
    return LoadedConfig(config, file, tuple(layers), warnings)


def _config_error(err: Any, layers: list[Layer]) -> ConfigError:
    problem = err.errors(include_url=False, include_input=False)[0]
    path = [str(part) for part in problem["loc"]]
    where, line = _place(layers, path)
    what = problem["msg"][:1].lower() + problem["msg"][1:]
    at = f"{where}, line {line}" if line else where
    return ConfigError(f"{at}: {'.'.join(path)}: {what}", hint="correct that setting")


def _place(layers: list[Layer], path: list[str]) -> tuple[str, int | None]:
    """Which layer gave the value at ``path``, and on which line if that is a file."""
    for layer in reversed(layers):
        node: Any = layer.values
        for part in path:
            if isinstance(node, Mapping) and part in node:
                node = node[part]
            else:
                break
        else:
            if layer.file is not None:
                from openheim.config.lines import line_of

                return str(layer.file), line_of(layer.file, path)
            if layer.name == "environment":
                return f"OPENHEIM_{'__'.join(path).upper()}", None
            return f"the {layer.name}", None
    return "the config", None


def _unknown_keys(layers: list[Layer]) -> Iterator[str]:
    from openheim.config.models import Config

    for layer in layers:
        yield from _unknown_in(layer, Config, layer.values, [])


def _unknown_in(layer: Layer, model: Any, values: Mapping[str, Any], path: list[str]) -> Iterator[str]:
    from pydantic import BaseModel

    for key, value in values.items():
        field_info = model.model_fields.get(key)
        here = [*path, key]
        if field_info is None:
            close = get_close_matches(key, list(model.model_fields), 1)
            where, line = _place([layer], here)
            at = f"{where}, line {line}" if line else where
            meant = f"; did you mean {close[0]}?" if close else ""
            yield f"{at}: unknown setting {'.'.join(here)} is ignored{meant}"
        elif (
            isinstance(value, Mapping)
            and isinstance(field_info.annotation, type)
            and issubclass(field_info.annotation, BaseModel)
        ):
            yield from _unknown_in(layer, field_info.annotation, value, here)
