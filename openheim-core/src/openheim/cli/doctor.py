"""``openheim doctor``: what works on this machine, and what is missing."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openheim.cli import options
from openheim.cli.lean import LeanCommand
from openheim.cli.tables import print_json, print_table
from openheim.errors import ConfigError, OpenheimError
from openheim.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openheim.config.load import LoadedConfig
    from openheim.config.selection import Selection
    from openheim.plugins.host import PluginHost
    from openheim.runtime import Runtime

__all__ = ("app",)

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=LeanCommand)
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    offline: Annotated[bool, typer.Option("--offline", help="Do not try to reach providers.")] = False,
) -> int:
    """Check versions, settings, plugins, keys and providers. Exits with 1 if something is wrong.

    Providers are asked for their models, with their keys. Keys are never shown, only whether they are there.
    """
    findings = list(_examine(offline))
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        print_table(("WHAT", "STATUS", "DETAIL"), [(item.subject, item.status, item.detail) for item in findings])
    return 1 if any(finding.status == "problem" for finding in findings) else 0


def _examine(offline: bool) -> Iterator[Finding]:
    from openheim import __version__

    yield Finding("openheim", "ok", __version__)
    yield Finding("python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    # What plugins report while they are tried; each line is a finding too.
    reported: list[str] = []
    try:
        loaded, runtime = _runtime(reported)
    except OpenheimError as err:
        yield Finding("config", "problem", str(err))
        return
    exists = loaded.file.exists()
    yield Finding(
        "config", "ok" if exists else "note", f"{loaded.file}{'' if exists else ' (not there; defaults apply)'}"
    )
    for text in loaded.warnings:
        yield Finding("config", "problem", text)
    yield _data_folder(runtime)
    yield from _plugins(runtime.host)
    yield from _tools(runtime)
    yield from _rules(runtime)
    yield from _examinations(runtime)
    yield from _gates(runtime)
    yield from _transports(runtime)
    yield from _keys(runtime.host)
    yield from _providers(runtime, offline)
    for line in reported:
        yield Finding("plugins", "problem", line)


def _runtime(reported: list[str]) -> tuple[LoadedConfig, Runtime]:
    from openheim.config.load import load_config
    from openheim.plugins.host import PluginHost
    from openheim.plugins.policy import policy_from
    from openheim.runtime import Runtime

    chosen = options.current()
    loaded = load_config(chosen.config)
    policy = policy_from(
        loaded.config.plugins, os.environ, safe_mode=chosen.safe_mode, managed=loaded.managed.get("plugins")
    )
    host = PluginHost(policy, report=reported.append, debug=chosen.debug)
    return loaded, Runtime(loaded, host, report=reported.append)


def _data_folder(runtime: Runtime) -> Finding:
    try:
        from openheim.prompt import read_identity

        runtime.store.prepare()
        read_identity(runtime.loaded.data_dir / "system.md")
    except OpenheimError as err:
        return Finding("data folder", "problem", str(err))
    return Finding("data folder", "ok", str(runtime.loaded.data_dir))


def _plugins(host: PluginHost) -> Iterator[Finding]:
    rows = host.rows()
    for row in rows:
        origin = f"{row.candidate.origin}"
        bad = row.status in ("error", "conflict", "incompatible")
        detail = f"{origin}: {row.status}{f' ({row.note})' if row.note else ''}"
        yield Finding(f"plugin {row.candidate.kind}.{row.candidate.name}", "problem" if bad else "ok", detail)
    for line in host.catalogue.problems:
        yield Finding("plugins", "problem", line)
    for line in host.policy.unmatched(host.catalogue):
        yield Finding("plugins", "note", line)
    for kind, advice in (("providers", "openheim-provider-openai"), ("tools", "openheim-tools-fs")):
        if not any(row.candidate.kind == kind for row in rows):
            yield Finding(kind, "problem", f"none is installed; try: pip install {advice}")


def _tools(runtime: Runtime) -> Iterator[Finding]:
    """What a session in this directory would offer."""
    try:
        boundary = runtime.loaded.work_dir(Path())
    except OpenheimError as err:
        yield Finding("work directory", "problem", str(err))
        return
    yield Finding("work directory", "ok", str(boundary))
    try:
        names = [spec.name for spec in runtime.toolbox.specs]
    except OpenheimError as err:
        yield Finding("tools", "problem", str(err))
        return
    if names:
        yield Finding("tools", "ok", ", ".join(names))


def _rules(runtime: Runtime) -> Iterator[Finding]:
    from openheim.cli.rule_checks import rules_about_no_tool

    for finding in rules_about_no_tool(runtime.loaded, runtime.host):
        yield Finding(f"rule {finding.message.partition(':')[0]}", "note", str(finding))


def _examinations(runtime: Runtime) -> Iterator[Finding]:
    """What plugins find about themselves."""
    try:
        context = runtime.tools_context(runtime.loaded.work_dir(Path()))
    except OpenheimError:
        return  # There is no work directory, which is a finding already.
    yield from runtime.host.findings(context, runtime.loaded.config.tools)


def _gates(runtime: Runtime) -> Iterator[Finding]:
    """The gate that sessions have, and those with settings."""
    config, host = runtime.loaded.config, runtime.host
    for name in sorted({config.permissions.gate, *config.gates}):
        try:
            settings = host.validate_settings("gates", name, config.gates.get(name, {}), where=f"[gates.{name}]")
            host.create_gate(name, settings)
        except OpenheimError as err:
            yield Finding(f"gate {name}", "problem", str(err))
        else:
            yield Finding(f"gate {name}", "ok", "in use" if name == config.permissions.gate else "has settings")


def _transports(runtime: Runtime) -> Iterator[Finding]:
    """Those with settings."""
    for name, table in sorted(runtime.loaded.config.transports.items()):
        try:
            runtime.host.validate_settings("transports", name, table, where=f"[transports.{name}]")
        except ConfigError as err:
            yield Finding(f"transport {name}", "problem", str(err))
        except OpenheimError as err:
            # Only its own command needs it.
            yield Finding(f"transport {name}", "note", str(err))
        else:
            yield Finding(f"transport {name}", "ok", "has settings")


def _keys(host: PluginHost) -> Iterator[Finding]:
    from openheim.config.selection import KEY_VARIABLES, key_advice
    from openheim.plugins.first_party import distribution_of

    found = {kind: variable for kind, variable in KEY_VARIABLES.items() if os.environ.get(variable)}
    installed = host.names("providers")
    usable = [variable for kind, variable in found.items() if kind in installed]
    yield Finding(
        "keys in the environment", "ok" if usable else "note", ", ".join(usable) or f"none; {key_advice(installed)}"
    )
    for kind, variable in found.items():
        if kind not in installed:
            advice = f"pip install {distribution_of('providers', kind)}"
            yield Finding(f"key {variable}", "note", f"not used: its provider's plugin is not installed; {advice}")


def _default_provider(runtime: Runtime, selection: Selection) -> Finding:
    name, model = selection.settings.name, selection.model
    try:
        model = model or runtime.provider(name)[0].default_model
    except OpenheimError:
        pass  # The finding about this provider tells it.
    else:
        if not model:
            detail = f"{name}, for which no model is named: set default_model in [providers.{name}]"
            return Finding("default provider", "problem", detail)
    return Finding("default provider", "note" if selection.notice else "ok", name)


def _providers(runtime: Runtime, offline: bool) -> Iterator[Finding]:
    from openheim.cli.reaching import examine_providers
    from openheim.config.selection import select_provider

    names = set(runtime.loaded.config.providers)
    try:
        selection = select_provider(runtime.loaded.config, installed=lambda: runtime.host.names("providers"))
        names.add(selection.settings.name)
        yield _default_provider(runtime, selection)
    except OpenheimError as err:
        yield Finding("default provider", "problem", str(err))
    yield from examine_providers(runtime, sorted(names), offline=offline)
