"""The tests that the conformance page names exist."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PAGE = (CHECKOUT / "docs/explanation/conformance.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/.]+)::(\w+)`", PAGE)))


def test_tests_are_named() -> None:
    rows = [line for line in PAGE.splitlines() if re.match(r"\| \d", line)]
    assert rows
    assert not [row for row in rows if "::" not in row]


def test_each_check_stands_once() -> None:
    """A row holds one check or more (``2, 3``)."""
    cells = re.findall(r"^\| (\d[^|]*) \|", PAGE, re.MULTILINE)
    checks = Counter(check for cell in cells for check in cell.split(", "))
    assert all(map(str.isdecimal, checks))
    assert [check for check, times in checks.items() if times > 1] == []


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_the_test_exists(file: str, name: str) -> None:
    tree = ast.parse((CHECKOUT / file).read_text(encoding="utf-8"))
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert name in functions
