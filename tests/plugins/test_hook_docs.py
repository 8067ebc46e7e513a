"""The reference of the hooks mirrors the hooks."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pluggy
import pytest

from openheim.plugins import hookspecs
from openheim.plugins.catalogue import KINDS
from openheim.plugins.registration import ESSENTIAL_HOOKS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "hooks.md"
HEADING = re.compile(r"^### `(?P<name>\w+)(?P<signature>\(.*)`$", re.MULTILINE)


def all_hooks() -> list[str]:
    manager = pluggy.PluginManager("openheim")
    manager.add_hookspecs(hookspecs)
    return sorted(vars(manager.hook))


def sections() -> dict[str, tuple[str, str]]:
    """Name to signature and text."""
    text = PAGE.read_text(encoding="utf-8")
    found = list(HEADING.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    return {
        match["name"]: (match["signature"], text[match.end() : end]) for match, end in zip(found, ends, strict=True)
    }


def test_every_hook_has_a_section_and_no_other_has() -> None:
    assert sorted(sections()) == all_hooks()


@pytest.mark.parametrize("name", all_hooks())
def test_the_section_shows_signature_and_arguments(name: str) -> None:
    signature = inspect.signature(getattr(hookspecs, name))
    shown, text = sections()[name]
    # Annotations are texts here, which signature() puts into quotes.
    assert shown == str(signature).replace("'", "")
    assert re.findall(r"^- `(\w+)`:", text, re.MULTILINE) == list(signature.parameters)


@pytest.mark.parametrize("name", all_hooks())
def test_the_docstring_names_the_arguments(name: str) -> None:
    function = getattr(hookspecs, name)
    doc = inspect.getdoc(function) or ""
    missing = [parameter for parameter in inspect.signature(function).parameters if f"{parameter}:" not in doc]
    assert not missing or "as in ``openheim_create_provider``" in doc


def test_the_table_names_groups_and_essential_hooks() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `openheim\.(\w+)` \|.*\| (`\w+`|none[^|]*) \|$", text, re.MULTILINE))
    assert list(rows) == list(KINDS)
    assert {kind: hook.strip("`") for kind, hook in rows.items() if kind != "plugins"} == ESSENTIAL_HOOKS
