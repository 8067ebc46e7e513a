"""Plugins use what every plugin may use. import-linter holds the rest of the layering, in CI."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.packaging.members import CHECKOUT, PLUGINS, import_name


def imports(nodes: Iterable[ast.AST]) -> set[str]:
    """Every module and name that is imported, dotted."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"), filename=str(file))


@pytest.mark.parametrize("plugin", PLUGINS, ids=str)
def test_plugins_import_nothing_private(plugin: Path) -> None:
    files = list((CHECKOUT / plugin / "src").rglob("*.py"))
    assert files
    private = {
        (file.name, name)
        for file in files
        for name in imports(ast.walk(parsed(file)))
        if name.startswith("openheim.") and any(part.startswith("_") for part in name.split("."))
    }
    assert not private


@pytest.mark.parametrize("plugin", PLUGINS, ids=str)
def test_plugin_modules_import_only_openheim_and_the_standard_library(plugin: Path) -> None:
    module = CHECKOUT / plugin / "src" / import_name(plugin) / "plugin.py"
    names = {name.partition(".")[0] for name in imports(parsed(module).body)}
    assert names <= sys.stdlib_module_names | {"openheim", import_name(plugin)}
