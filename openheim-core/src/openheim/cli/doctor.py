"""``openheim doctor``: what works on this machine, and what is missing."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from openheim.cli.lean import LeanCommand
from openheim.cli.tables import print_json, print_table
from openheim.errors import OpenheimError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openheim.config.load import LoadedConfig

__all__ = ("app",)

app = typer.Typer(add_completion=False, rich_markup_mode=None)

#: Seconds that reaching a provider may take.
REACH_TIMEOUT_SECS = 5.0


@dataclass(frozen=True, slots=True)
class Finding:
    """``status`` is ``ok``, ``note`` (fine, but worth knowing) or ``problem``."""

    subject: str
    status: Literal["ok", "note", "problem"]
    detail: str


@app.command(cls=LeanCommand)
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    offline: Annotated[bool, typer.Option("--offline", help="Do not try to reach providers.")] = False,
) -> int:
    """Check versions, settings, plugins, keys and providers. Exits with 1 if something is wrong.

    Keys are never shown, only whether they are there.
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
    try:
        from openheim.cli import options
        from openheim.config.load import load_config

        loaded = load_config(options.current().config)
    except OpenheimError as err:
        yield Finding("config", "problem", str(err))
        return
    exists = loaded.file.exists()
    yield Finding(
        "config", "ok" if exists else "note", f"{loaded.file}{'' if exists else ' (not there; defaults apply)'}"
    )
    for text in loaded.warnings:
        yield Finding("config", "problem", text)
    yield _data_folder(loaded)
    yield from _plugins(loaded)
    yield from _keys()
    yield from _providers(loaded, offline)
    yield from _sandbox()


def _data_folder(loaded: LoadedConfig) -> Finding:
    from openheim.store import HistoryStore

    try:
        HistoryStore(loaded.data_dir / "history").prepare()
    except OpenheimError as err:
        return Finding("data folder", "problem", str(err))
    return Finding("data folder", "ok", str(loaded.data_dir))


def _plugins(loaded: LoadedConfig) -> Iterator[Finding]:
    from openheim.cli.starting import make_host

    rows = make_host(loaded).rows()
    for row in rows:
        origin = f"{row.candidate.origin}"
        bad = row.status in ("error", "conflict", "incompatible")
        detail = f"{origin}: {row.status}{f' ({row.note})' if row.note else ''}"
        yield Finding(f"plugin {row.candidate.kind}.{row.candidate.name}", "problem" if bad else "ok", detail)
    for kind, advice in (("providers", "openheim-provider-openai"), ("tools", "openheim-tools-fs")):
        if not any(row.candidate.kind == kind for row in rows):
            yield Finding(kind, "problem", f"none is installed; try: pip install {advice}")


def _keys() -> Iterator[Finding]:
    from openheim.config.selection import KEY_VARIABLES

    found = [variable for variable in KEY_VARIABLES.values() if os.environ.get(variable)]
    yield Finding("keys in the environment", "ok" if found else "note", ", ".join(found) or "none")


def _providers(loaded: LoadedConfig, offline: bool) -> Iterator[Finding]:
    from openheim.config.selection import resolve_entry, select_provider

    names = set(loaded.config.providers)
    try:
        selection = select_provider(loaded.config)
        names.add(selection.settings.name)
        yield Finding("default provider", "ok" if not selection.notice else "note", selection.settings.name)
    except OpenheimError as err:
        yield Finding("default provider", "problem", str(err))
    for name in sorted(names):
        subject = f"provider {name}"
        try:
            settings, _options = resolve_entry(loaded.config, name, os.environ)
        except OpenheimError as err:
            yield Finding(subject, "problem", str(err))
            continue
        key = "key found" if settings.api_key else "no key"
        if not settings.api_base:
            yield Finding(subject, "ok", f"kind {settings.kind}, {key}")
        elif offline:
            yield Finding(subject, "ok", f"kind {settings.kind}, {key}, not tried")
        else:
            yield _reach(subject, settings.api_base, f"kind {settings.kind}, {key}")


def _reach(subject: str, address: str, detail: str) -> Finding:
    import anyio

    from openheim.http import HttpClient

    async def ask() -> int:
        client = HttpClient()
        try:
            async with client.stream("GET", f"{address}/models", timeout_secs=REACH_TIMEOUT_SECS) as response:
                return response.status
        finally:
            await client.aclose()

    try:
        # Without the key: any answer shows that the service is there.
        status = anyio.run(ask)
    except OpenheimError as err:
        return Finding(subject, "problem", f"{detail}, not reached: {err}")
    return Finding(subject, "ok", f"{detail}, reached (HTTP {status} without a key)")


def _sandbox() -> Iterator[Finding]:
    import shutil

    if sys.platform != "linux":
        return
    tool = shutil.which("bwrap")
    yield Finding("sandbox", "ok" if tool else "note", f"bubblewrap {'at ' + tool if tool else 'is not installed'}")
