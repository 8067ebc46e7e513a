"""``openheim config``: the settings in force, where each comes from, what is wrong with them, and changing one."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openheim.cli import options
from openheim.cli.failures import warn
from openheim.cli.lean import LeanCommand, lean_app
from openheim.cli.printing import one_line, print_text
from openheim.cli.starting import read_settings
from openheim.cli.tables import print_json, print_table
from openheim.config.keys import parse_key, shown_key
from openheim.config.paths import config_file
from openheim.errors import OpenheimError, UsageError

if TYPE_CHECKING:
    from openheim.config.findings import Finding
    from openheim.config.layers import Origin

__all__ = ("app",)

app = lean_app(no_args_is_help=True, help="Show, check and change settings.")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Trust = Annotated[bool, typer.Option("--trust", help="Count this project's settings in, trusted or not.")]
Project = Annotated[bool, typer.Option("--project", help="The project's file, .openheim/config.toml.")]
Local = Annotated[bool, typer.Option("--local", help="The project's .openheim/config.local.toml, for this checkout.")]
Dir = Annotated[str | None, typer.Argument(metavar="DIR", help="A folder; the current one if left out.")]


@app.command("show", cls=LeanCommand)
def show(as_json: AsJson = False, trust: Trust = False) -> None:
    """Show every setting in force and the layer that it comes from. Secrets are masked."""
    from openheim.config.describing import described

    loaded = read_settings(trust=True if trust else None)
    settings = list(described(loaded))
    if as_json:
        values = {shown_key(one.path): {"value": one.value, **_origin_fields(one.origin)} for one in settings}
        print_json({"values": values, "warnings": [finding.to_dict() for finding in loaded.findings]})
        return
    rows = [(shown_key(one.path), _shown(one.value), one.origin.layer, _where(one.origin)) for one in settings]
    print_table(("SETTING", "VALUE", "LAYER", "WHERE"), rows)


def _origin_fields(origin: Origin) -> dict[str, Any]:
    return {"layer": origin.layer, "file": str(origin.file) if origin.file else None, "line": origin.line}


def _where(origin: Origin) -> str:
    if origin.file is None:
        return ""
    return f"{origin.file}:{origin.line}" if origin.line else str(origin.file)


def _shown(value: Any) -> str:
    import json

    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)


@app.command("path", cls=LeanCommand)
def path(project: Project = False, local: Local = False) -> None:
    """Print where the config file is, whether it exists or not."""
    print_text(str(_file(project, local)))


@app.command("check", cls=LeanCommand)
def check(as_json: AsJson = False, trust: Trust = False) -> int:
    """Check all settings, those of plugins too, and say on which line something is wrong. Exits with 1 if it is."""
    from openheim.cli.config_checks import all_findings

    errors, warnings = all_findings(trust=True if trust else None)
    if as_json:
        print_json(
            {
                "ok": not errors,
                "errors": [finding.to_dict() for finding in errors],
                "warnings": [finding.to_dict() for finding in warnings],
            }
        )
    else:
        for word, findings in (("error", errors), ("warning", warnings)):
            for finding in findings:
                print(one_line(f"{word}: {_sentence(finding)}"))
        if not errors:
            verdict = "can be used" if warnings else "is fine"
            print_text(f"{config_file(options.current().config)} {verdict}")
    return 1 if errors else 0


def _sentence(finding: Finding) -> str:
    return f"{finding.text} ({finding.hint})" if finding.hint else finding.text


@app.command("schema", cls=LeanCommand)
def schema() -> None:
    """Print the JSON Schema of the config file, for editors."""
    from openheim.config.schema import SCHEMA

    print_json(SCHEMA)


@app.command("set", cls=LeanCommand)
def set_setting(
    key: Annotated[str, typer.Argument(metavar="KEY", help="The setting, such as permissions.mode.")],
    value: Annotated[
        str, typer.Argument(metavar="VALUE", help="Its value: a text, or TOML. '-' reads it from standard input.")
    ],
    project: Project = False,
    local: Local = False,
) -> None:
    """Set one value in the config file, once it has been checked. Comments and everything else stay as they are."""
    from openheim.config.setting import set_in_file

    file = _file(project, local)
    named = parse_key(key)
    text = sys.stdin.readline().rstrip("\r\n") if value == "-" else value
    changed = set_in_file(
        file, named, text, config=options.current().config, cwd=_current_directory(), by_project=project or local
    )
    print_text(f"{shown_key(named)} is {'set' if changed else 'set so already'} in {file}")
    _say_what_hinders(file, named)
    _say_what_will_fail(shown_key(named), trust=True if project or local else None)


def _file(project: bool, local: bool) -> Path:
    if project and local:
        raise UsageError("--project and --local cannot stand together", hint="choose one of them")
    if not (project or local):
        return config_file(options.current().config)
    from openheim.config.project import Project as ProjectFolder
    from openheim.config.project import settings_folder

    found = ProjectFolder(settings_folder(_current_directory()))
    return found.local_config if local else found.config


def _say_what_hinders(file: Path, named: tuple[str, ...]) -> None:
    """Warns where the value that was just written is not the one in force, or may be read by others."""
    from openheim.config.load import load_config
    from openheim.config.rules import readable_by_others
    from openheim.config.toml import read_toml

    if readable_by_others(file, read_toml(file) or {}):
        warn(f"{file} holds a key and others may read it; chmod 600 {file}")
    loaded = load_config(options.current().config)
    for notice in loaded.notices:
        warn(notice)
    origin = loaded.origin(*named)
    if origin.layer != "default" and origin.file != file:
        place = str(origin.file) if origin.file is not None else f"the {origin.layer}"
        warn(f"{shown_key(named)} has no effect here, since {place} sets it too")


def _say_what_will_fail(key: str, *, trust: bool | None) -> None:
    """Warns of what ``config check`` has against the setting, or what it stands in.

    It is no error: a provider, say, may be named before it is described.
    """
    from openheim.cli.config_checks import all_findings

    errors, warnings = all_findings(trust=trust)
    for finding in (*errors, *warnings):
        if finding.key and (f"{finding.key}.".startswith(f"{key}.") or key.startswith(f"{finding.key}.")):
            warn(_sentence(finding))


@app.command("trust", cls=LeanCommand)
def trust_folder(folder: Dir = None) -> None:
    """Trust a folder, so that the settings and skills that it brings take effect."""
    _decide(folder, trusted=True)


@app.command("untrust", cls=LeanCommand)
def untrust_folder(folder: Dir = None) -> None:
    """Trust a folder no longer. What it brings is ignored, without a question."""
    _decide(folder, trusted=False)


def _decide(folder: str | None, *, trusted: bool) -> None:
    from openheim.config.paths import trust_file
    from openheim.config.project import settings_folder
    from openheim.config.trust import TrustStore

    if folder == "":
        raise UsageError("DIR is empty", hint="name a folder, or leave it out for the current one")
    start = Path(folder) if folder is not None else _current_directory()
    if not start.is_dir():
        raise UsageError(f"there is no folder {start}", hint="name one that exists")
    decided = settings_folder(start)
    TrustStore(trust_file()).decide(decided, trusted=trusted)
    print_text(f"{decided} is {'trusted' if trusted else 'not trusted'}")


def _current_directory() -> Path:
    try:
        return Path(os.getcwd())
    except OSError as err:
        raise OpenheimError("the current directory does not exist any more", hint="change to one that does") from err
