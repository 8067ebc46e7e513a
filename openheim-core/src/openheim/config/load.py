"""From files, environment and flags to one :class:`~openheim.config.models.Config`.

The layers, each winning over the ones before: the user's file, the project's file and its local one (once the folder is
trusted), the environment, flags, the managed policy. :mod:`openheim.config.layers` says how they are put together.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openheim.config.checks import check_layers
from openheim.config.environment import environment_layer
from openheim.config.findings import Finding, SettingError
from openheim.config.layers import Layer, Origin, lookup, merge_layers, origin_of
from openheim.config.paths import (
    absolute_path,
    config_file,
    expanded_path,
    home_dir,
    policy_files,
    start_directory,
    trust_file,
)
from openheim.config.project import Project, find_project, may_set
from openheim.config.toml import is_too_deep, read_toml
from openheim.errors import ConfigError, StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openheim.config.models import Config

__all__ = ("Examination", "Layer", "LoadedConfig", "environment_layer", "examine_config", "load_config", "merge_layers")


_WORK_DIR_HINT = "correct work_dir in the config; a relative one counts from where openheim is started"


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """The settings in force.

    Args:
        file: the user's config file, whether it exists or not.
        layers: where they come from; a later one wins.
        findings: what is worth a warning. ``warnings`` has the same as one line each, for a person.
        notices: what is worth saying and no fault, one line each.
        project: the folder with settings of its own that the working directory belongs to, if there is one.
        start: the directory that the process was in when the settings were read, or None if it was gone. Relative
            paths count from it, wherever a session or a program goes later.
    """

    config: Config
    file: Path
    layers: tuple[Layer, ...] = ()
    findings: tuple[Finding, ...] = ()
    notices: tuple[str, ...] = ()
    project: Project | None = None
    start: Path | None = field(default_factory=start_directory)

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(map(str, self.findings))

    @property
    def data_dir(self) -> Path:
        """Where history, skills and memory are kept.

        Raises:
            ConfigError: no home folder is known, or the current directory was gone and the path is relative.
        """
        named = self.config.data_dir
        return absolute_path(expanded_path(named, "data_dir"), self.start) if named else home_dir(self.start)

    @property
    def managed(self) -> Mapping[str, Any]:
        """What the managed policy sets, as nested tables; nothing may override it."""
        return merge_layers([layer for layer in self.layers if layer.name == "policy"])

    def is_managed(self, *path: str) -> bool:
        """Whether the managed policy sets this, as in ``is_managed("permissions", "mode")``."""
        try:
            lookup(self.managed, path)
        except KeyError:
            return False
        return True

    def origin(self, *path: str) -> Origin:
        """Which layer a value comes from, with file and line."""
        return origin_of(self.layers, path)

    def trusts(self, cwd: Path) -> bool:
        """Whether the project that ``cwd`` belongs to is trusted, so that what it brings may take effect."""
        folder = find_project(cwd)
        if folder is None:
            return False
        if self.project is not None and self.project.folder == folder:
            return self.project.trusted is True
        return _stored_trust(folder, []) is True

    def denied_elsewhere(self, cwd: Path) -> tuple[str, ...]:
        """Deny rules of the project that ``cwd`` belongs to, if it is trusted and another one than :attr:`project`.

        Raises:
            SettingError: that project's settings cannot be read, or are wrong.
        """
        folder = find_project(cwd)
        if folder is None or (self.project is not None and self.project.folder == folder) or not self.trusts(cwd):
            return ()
        own = [layer for layer in self.layers if layer.name not in ("project", "local")]
        reading = _Reading({})
        checked = check_layers([*own, *_project_layers(Project(folder, True), own, reading)])
        for finding in (*reading.errors, *checked.errors):
            raise SettingError(finding)
        return checked.config.permissions.deny if checked.config is not None else ()

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
                hint=_WORK_DIR_HINT if named else "start in a directory that exists",
            ) from err
        if not resolved.is_dir():
            raise ConfigError(f"the work directory {folder} is not a directory", hint="name a directory")
        return resolved


@dataclass(frozen=True, slots=True)
class Examination:
    """All that can be said of the settings.

    ``loaded`` is None if errors are in the way of that. It may be there beside errors that concern single values, for
    whoever looks for more of them; only :func:`load_config` gives settings to work with.
    """

    values: Mapping[str, Any] = field(repr=False)
    errors: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
    loaded: LoadedConfig | None


def load_config(
    path: str | None = None,
    *,
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    cwd: Path | str | None = None,
    trust: bool | None = None,
) -> LoadedConfig:
    """Reads and checks the settings.

    Args:
        path: a config file to read instead of the user's own; it must exist.
        flags: settings from the command line or the embedding program; only a managed policy wins over them.
        environment: variables to read, by default the process's.
        cwd: the working directory, whose project may have settings too; by default the process's.
        trust: whether to trust that project, this once; None for what is stored.

    Raises:
        SettingError: a file cannot be read, or a value is wrong; the message names file, line and key. It is a
            ``ConfigError``.
    """
    found = examine_config(path, flags=flags, environment=environment, cwd=cwd, trust=trust)
    if found.errors or found.loaded is None:
        raise SettingError(found.errors[0])
    return found.loaded


def examine_config(
    path: str | None = None,
    *,
    flags: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    cwd: Path | str | None = None,
    trust: bool | None = None,
    replaced: Mapping[Path, Mapping[str, Any]] | None = None,
) -> Examination:
    """As :func:`load_config`, with all errors instead of the first.

    Args:
        replaced: contents to take for files, instead of what they hold.

    Raises:
        ConfigError: the file named is not there.
    """
    reading = _Reading(replaced or {})
    file = config_file(path)
    own = [Layer("user", reading.file(file, required=path is not None) or {}, file)]
    over = [reading.environment(os.environ if environment is None else environment)]
    if flags:
        over.append(Layer("flags", reading.given(flags)))
    for policy, required in policy_files():
        # One that is named must be there: a policy that is missed by a slip would be worse than an error.
        values = reading.file(policy, required=required)
        if values is not None:
            over.append(Layer("policy", values, policy))
    project = _project(cwd, trust, reading)
    layers = own + (_project_layers(project, own + over, reading) if project is not None else []) + over
    checked = check_layers(layers)
    findings = tuple(reading.warnings + checked.warnings)
    loaded = None
    if checked.config is not None and not reading.errors:
        loaded = LoadedConfig(checked.config, file, tuple(layers), findings, tuple(reading.notices), project)
    return Examination(checked.values, tuple(reading.errors + checked.errors), findings, loaded)


class _Reading:
    """Reads files and gathers what is to be said about them."""

    def __init__(self, replaced: Mapping[Path, Mapping[str, Any]]) -> None:
        self.replaced = replaced
        self.errors: list[Finding] = []
        self.warnings: list[Finding] = []
        self.notices: list[str] = []

    def file(self, path: Path, *, required: bool = False) -> Mapping[str, Any] | None:
        if path in self.replaced:
            replaced = self.replaced[path]
            if is_too_deep(replaced):
                self.errors.append(Finding("nested too deeply", file=path, hint="make it flatter"))
                return {}
            return replaced
        try:
            values = read_toml(path, given=required)
        except SettingError as err:
            self.errors.append(err.finding)
            return {}
        if values is None and required:
            raise ConfigError(f"there is no config file {path}", hint="check the path, or run openheim init")
        return values

    def environment(self, variables: Mapping[str, str]) -> Layer:
        try:
            return environment_layer(variables)
        except SettingError as err:
            self.errors.append(err.finding)
            return Layer("environment", {})

    def given(self, flags: Mapping[str, Any]) -> Mapping[str, Any]:
        if is_too_deep(flags):
            self.errors.append(Finding("nested too deeply", source="the flags", hint="make them flatter"))
            return {}
        return flags


def _project(cwd: Path | str | None, trust: bool | None, reading: _Reading) -> Project | None:
    try:
        folder = find_project(Path(cwd) if cwd is not None else Path(os.getcwd()))
    except OSError:
        return None
    if folder is None:
        return None
    if trust is not None:
        return Project(folder, trust)
    trusted = _stored_trust(folder, reading.warnings)
    project = Project(folder, trusted)
    if not trusted and project.brings():
        reading.notices.append(
            f"the settings and skills in {folder / '.openheim'} are ignored, since that folder is not trusted "
            f"(openheim config trust {folder}, or --trust for one run)"
        )
    return project


def _stored_trust(folder: Path, warnings: list[Finding]) -> bool | None:
    from openheim.config.trust import TrustStore

    try:
        return TrustStore(trust_file()).decision(folder)
    except StorageError as err:
        warnings.append(Finding(err.message, hint=err.hint))
        return None


def _project_layers(project: Project, users: Sequence[Layer], reading: _Reading) -> list[Layer]:
    if not project.trusted:
        return []
    layers = []
    theirs = merge_layers(users)
    for name, file in (("project", project.config), ("local", project.local_config)):
        # A pipe, say, would be waited for.
        if not file.is_file() and file not in reading.replaced:
            continue
        allowed, refused = may_set(reading.file(file) or {}, theirs)
        layers.append(Layer(name, allowed, file))
        for one in refused:
            reading.warnings.append(_refusal(file, one.path, one.reason))
    return layers


def _refusal(file: Path, path: Sequence[str], reason: str) -> Finding:
    from openheim.config.keys import shown_key
    from openheim.config.lines import line_of

    key = shown_key(path)
    return Finding(
        f"{key} cannot be set by a project and is ignored: {reason}",
        key=key,
        file=file,
        line=line_of(file, path),
        hint="set it in your own config.toml",
    )
