"""What ``openheim config check`` looks at: all that loading does, and what is otherwise found only when it is used."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openheim.cli import options
from openheim.config.checks import finding_at, finding_of
from openheim.config.findings import Finding
from openheim.config.masking import without_keys
from openheim.errors import ConfigError, OpenheimError, PluginDisabledError, PluginError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from openheim.config.load import LoadedConfig
    from openheim.config.models import ProviderEntry

__all__ = ("all_findings",)


def all_findings(*, trust: bool | None = None) -> tuple[list[Finding], list[Finding]]:
    """The errors and the warnings."""
    from openheim.config.load import examine_config

    examined = examine_config(options.current().config, trust=trust)
    errors, warnings = list(examined.errors), list(examined.warnings)
    if examined.loaded is not None:
        loaded = examined.loaded
        warnings += map(Finding, loaded.notices)
        check = _Check(loaded)
        check.all()
        errors += check.errors
        warnings += check.warnings
    # A slip that the plugin has refused needs no doubt about it as well.
    wrong = {finding.key for finding in errors} - {""}
    return errors, [finding for finding in warnings if finding.key not in wrong]


class _Check:
    """Looks at settings that load, each part by itself, so that one fault does not hide another."""

    def __init__(self, loaded: LoadedConfig) -> None:
        self.loaded = loaded
        self.errors: list[Finding] = []
        self.warnings: list[Finding] = []

    def all(self) -> None:
        self._directories()
        self._files()
        for name, entry in self.loaded.config.providers.items():
            self._provider(name, entry)
        self._names()
        self._plugins()

    def _error(self, path: Sequence[str], err: OpenheimError) -> None:
        self.errors.append(finding_at(self.loaded.layers, path, err.message, err.hint))

    def _warning(self, path: Sequence[str], err: OpenheimError) -> None:
        self.warnings.append(finding_at(self.loaded.layers, path, err.message, err.hint))

    def _directories(self) -> None:
        try:
            self.loaded.work_dir(Path(os.getcwd()))
        except OpenheimError as err:
            self._error(("work_dir",), err)

    def _files(self) -> None:
        from openheim.config.rules import readable_by_others

        for layer in self.loaded.layers:
            if layer.file is not None and readable_by_others(layer.file, layer.values):
                message = "holds a key, and others may read it"
                self.warnings.append(Finding(message, file=layer.file, hint=f"chmod 600 {layer.file}"))

    def _provider(self, name: str, entry: ProviderEntry) -> None:
        from openheim.config.rules import fallback_problems, provider_problems, sends_in_clear
        from openheim.config.secrets import UnusableKey, find_key, key_variable, require_keyring

        path = ("providers", name)
        broken_rules = [*provider_problems(name, entry), *fallback_problems(name, self.loaded.config)]
        self.errors += [finding_of(self.loaded.layers, broken) for broken in broken_rules]
        given = [key for key in ("env_var", "api_key", "api_key_file") if getattr(entry, key)]
        if len(given) > 1:
            places = ", ".join(given)
            message = f"[providers.{name}] has more than one place for its key: {places}; the first that has it wins"
            self._warning((*path, given[-1]), ConfigError(message, hint="keep the one that is meant"))
        try:
            if isinstance(entry.api_key, dict) and "keyring" in entry.api_key:
                # Looking into it may put a question to the user.
                if not os.environ.get(key_variable(name, entry)):
                    require_keyring(name)
                return
            key = find_key(name, entry, os.environ)
        except UnusableKey as err:
            # The settings are fine; what they refer to is not there, here and now.
            self._warning((*path, *err.setting), err)
            return
        if key and sends_in_clear(entry.api_base or "", self.loaded.config.http.proxy):
            # The line of the key, if the settings have it: the address alone may be fine.
            source = next((key for key in given if key != "env_var" or os.environ.get(entry.env_var or "")), "api_base")
            message = f"the key of [providers.{name}] would go over plain http, in clear"
            hint = "use an https address, or a loopback one without a proxy, or take the key out"
            self._error((*path, source), ConfigError(message, hint=hint))

    def _names(self) -> None:
        from openheim.config.selection import provider_names

        config = self.loaded.config
        known = provider_names(config)
        if config.default_provider is not None and config.default_provider not in known:
            message = f"default_provider names unknown provider {without_keys(config.default_provider)!r}"
            self._error(("default_provider",), ConfigError(message, hint=f"there are: {', '.join(known)}"))

    def _plugins(self) -> None:
        from openheim.cli.starting import make_host

        try:
            host = make_host(self.loaded)
        except ConfigError as err:
            self._error(("plugins",), err)
            return
        for kind, name, table, section in self._sections():
            try:
                host.validate_settings(kind, name, table.without_places(), where=f"[{'.'.join(section)}]")
            except PluginDisabledError:
                continue
            except ConfigError as err:
                # It names the keys that are wrong; the first of them is where to look.
                wrong = next((key for key in table if f"] {key}: " in err.message), None)
                self._error((*section, wrong) if wrong is not None else section, err)
            except PluginError as err:
                self._warning(section, err)
        self._rules()
        gate = self.loaded.config.permissions.gate
        if gate not in host.names("gates"):
            known = ", ".join(host.names("gates"))
            self._error(
                ("permissions", "gate"),
                ConfigError(f"there is no gate {without_keys(gate)!r}", hint=f"there are: {known}"),
            )

    def _rules(self) -> None:
        from openheim.cli.rule_checks import rules_about_no_tool
        from openheim.cli.starting import make_host

        # Of its own, since what plugins report while they are asked for their tools is no matter of settings.
        self.warnings += rules_about_no_tool(self.loaded, make_host(self.loaded, report=lambda line: None))

    def _sections(self) -> Iterator[tuple[str, str, Any, tuple[str, str]]]:
        from openheim.config.rules import kind_of

        config = self.loaded.config
        for section, tables in (("tools", config.tools), ("gates", config.gates), ("transports", config.transports)):
            for name, table in tables.items():
                yield section, name, table, (section, name)
        for name, entry in config.providers.items():
            yield "providers", kind_of(name, entry), entry.options, ("providers", name)
