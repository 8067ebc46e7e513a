"""Permission rules: their form, and what they match."""

from __future__ import annotations

import pytest

from openheim.errors import UsageError
from openheim.permissions import parse_rule


@pytest.mark.parametrize(
    ("rule", "tool", "target", "matches"),
    [
        ("edit_file", "edit_file", "a", True),
        ("edit_file", "edit_file", None, True),
        ("edit_file", "edit_files", "a", False),
        ("*_file", "edit_file", "a", True),
        ("edit_file(src/**)", "edit_file", "src/a/b.py", True),
        ("edit_file(src/**)", "edit_file", "src", False),
        ("edit_file(src/**)", "edit_file", "srcs/a", False),
        ("edit_file(src/*)", "edit_file", "src/a", True),
        ("edit_file(src/*)", "edit_file", "src/a/b", False),
        ("edit_file(*.py)", "edit_file", "a.py", True),
        ("edit_file(*.py)", "edit_file", "src/a.py", False),
        ("edit_file(**/*.py)", "edit_file", "src/x/a.py", True),
        ("edit_file(**/*.py)", "edit_file", "a.py", True),
        ("edit_file(a?c)", "edit_file", "abc", True),
        ("edit_file(a?c)", "edit_file", "a/c", False),
        ("edit_file(a.c)", "edit_file", "abc", False),
        ("edit_file([x])", "edit_file", "x", False),
        ("edit_file([x])", "edit_file", "[x]", True),
        ("edit_file(src/**)", "edit_file", None, False),
        ("edit_file()", "edit_file", "", True),
        ("edit_file(a(b))", "edit_file", "a(b)", True),
        ("edit_file(./src/*)", "edit_file", "src/a", True),
        ("edit_file(src//./*)", "edit_file", "src/a", True),
        ("edit_file(src/)", "edit_file", "src/a/b", True),
        ("edit_file(src/)", "edit_file", "src", False),
        ("edit_file(src)", "edit_file", "src/a", False),
        ("edit_file(.)", "edit_file", ".", True),
        ("edit_file(./)", "edit_file", "a/b", True),
        ("edit_file(/src/*)", "edit_file", "src/a", False),
    ],
)
def test_rules_about_paths(rule: str, tool: str, target: str | None, matches: bool) -> None:
    assert parse_rule(rule).matches(tool, target, is_path=True) is matches
    assert str(parse_rule(rule)) == rule


@pytest.mark.parametrize(
    ("rule", "command", "matches"),
    [
        ("execute_command(git *)", "git log --oneline src/a", True),
        ("execute_command(git *)", "gitk", False),
        ("execute_command(make)", "make", True),
        ("execute_command(make)", "make clean", False),
    ],
)
def test_rules_about_commands(rule: str, command: str, matches: bool) -> None:
    assert parse_rule(rule).matches("execute_command", command, is_path=False) is matches


@pytest.mark.parametrize("text", ["", "a b", "edit_file(src", "(src)", "edit file(x)", "edit_file)x("])
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="cannot read the rule"):
        parse_rule(text)
