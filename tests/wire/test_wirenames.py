"""Names of tools and ids of calls as services take them, and back."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openheim.wirenames import ToolNames, wire_call_id, wire_tool_name

NINE = "[a-zA-Z0-9]{9}"


@pytest.mark.parametrize("name", ["read_file", "a", "_x", "srv__docs-get", "A" * 64])
def test_a_name_that_is_taken_stays(name: str) -> None:
    assert wire_tool_name(name) == name


@given(st.lists(st.text(max_size=80), unique=True, max_size=6))
def test_any_names_are_taken_differ_and_are_found_again(names: list[str]) -> None:
    sent = [wire_tool_name(name) for name in names]
    assert all(re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}", name) for name in sent)
    assert len(set(sent)) == len(names)
    tools = ToolNames(names)
    assert [tools.original(name) for name in sent] == names
    assert tools.original("nobody") == "nobody"


@pytest.mark.parametrize(
    "pattern", [NINE, f"^{NINE}$", r"[a-zA-Z0-9_-]+", "call_[0-9a-z]{24}", r"\d{9}", "toolu_[A-Za-z0-9]{24}", "x{0}.*"]
)
@given(ids=st.lists(st.text(min_size=1, max_size=30), unique=True, min_size=2, max_size=4))
def test_ids_match_and_differ(pattern: str, ids: list[str]) -> None:
    sent = [wire_call_id(one, pattern) for one in ids]
    assert all(re.fullmatch(pattern, one) for one in sent)
    assert len(set(sent)) == len(ids)
    assert sent == [wire_call_id(one, pattern) for one in ids]


def test_an_id_that_matches_stays() -> None:
    assert wire_call_id("abcDEF123", NINE) == "abcDEF123"


def test_a_pattern_that_nothing_matches() -> None:
    with pytest.raises(ValueError, match="matches"):
        wire_call_id("call_1", "no such id")
