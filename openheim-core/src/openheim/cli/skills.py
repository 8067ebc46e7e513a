"""``openheim skills``: what a session here may be taught."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from openheim.cli.lean import LeanCommand, lean_app
from openheim.cli.starting import read_settings
from openheim.cli.tables import print_json, print_table

__all__ = ("app",)

app = lean_app(no_args_is_help=True, help="List skills.")


@app.callback()
def skills() -> None:
    """List skills."""


@app.command("list", cls=LeanCommand)
def list_skills(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the skills that a session in this directory may have: the user's, and those of a trusted project."""
    from openheim.prompt.skills import SkillLibrary

    loaded = read_settings()
    project = loaded.project.folder if loaded.project is not None and loaded.project.trusted else None
    found = SkillLibrary(loaded.data_dir, project).skills()
    if as_json:
        print_json([asdict(skill) for skill in found])
        return
    if not found:
        print(f"there is none; put a Markdown file into {loaded.data_dir / 'skills'}", file=sys.stderr)
    print_table(("NAME", "SOURCE", "DESCRIPTION"), [(one.name, one.source, one.description) for one in found])
