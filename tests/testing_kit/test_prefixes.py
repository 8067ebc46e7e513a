"""The guard over prefixes: growth passes, and whatever else changes is named to the byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openheim.testing import PrefixGuard

TOOLS = [{"name": "read_file", "input_schema": {"type": "object"}}]


def body(*messages: Any, **changes: Any) -> bytes:
    fields = {"model": "m", "system": "Be brief: ä.", "messages": list(messages), "tools": TOOLS, "stream": True}
    return json.dumps({**fields, **changes}, ensure_ascii=False).encode()


def user(*texts: str, marked: bool = False) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"type": "text", "text": text} for text in texts]
    if marked:
        parts[-1]["cache_control"] = {"type": "ephemeral"}
    return {"role": "user", "content": parts}


REPLY = {"role": "assistant", "content": "done"}


def test_growth_is_no_change() -> None:
    guard = PrefixGuard([body(user("a")), body(user("a"), REPLY, user("b")), body(user("a"), REPLY, user("b", "c"))])
    guard.check(at_least=3)


def test_markers_may_move() -> None:
    guard = PrefixGuard([body(user("a", marked=True)), body(user("a"), REPLY, user("b", marked=True))])
    guard.check()
    with pytest.raises(AssertionError, match="cache_control"):
        PrefixGuard([body(user("a", marked=True)), body(user("a"), REPLY)], markers=()).check()


def test_the_byte_that_changed_is_named() -> None:
    before, after = body(user("a"), user("über b"), marked := user("x", marked=True)), body(user("a"), user("über c"))
    change = PrefixGuard([before]).add(after)
    assert marked and change is not None
    assert change.path == "messages[1].content[0].text"
    assert change.offset == before.index(b'b"')
    assert "über b" in str(change) and "über c" in str(change)


def test_bytes_behind_a_marker_are_counted_as_they_were_sent() -> None:
    guard = PrefixGuard([before := body(user("a", marked=True), user("yes"))])
    change = guard.add(body(user("a"), user("no")))
    assert change is not None and change.offset == before.index(b"yes")


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"system": "Be brief: ö."}, "system"),
        ({"tools": [{"name": "write_file"}]}, "tools[0].name"),
        ({"tools": []}, "tools[0]"),
        ({"thinking": {"type": "adaptive"}}, "thinking"),
    ],
)
def test_what_goes_with_the_messages_has_to_stay(changes: dict[str, Any], path: str) -> None:
    change = PrefixGuard([body(user("a"))]).add(body(user("a"), REPLY, **changes))
    assert change is not None and change.path == path
    assert PrefixGuard([body(user("a"))], changing=changes).add(body(user("a"), REPLY, **changes)) is None


def test_a_message_that_is_gone_is_a_change() -> None:
    guard = PrefixGuard([body(user("a"), REPLY, user("b"))])
    change = guard.add(body(user("a")))
    assert change is not None and change.path == "messages[1]"


def test_bodies_that_are_no_objects_are_compared_as_they_are() -> None:
    guard = PrefixGuard([b"one", b"one two", b"two"])
    assert [number for number, _change in guard.changes] == [2]
    assert guard.changes[0][1].offset == 0
    assert PrefixGuard([b'{"a": 1} 1']).add(b'{"a": 1} 2') is not None


def test_a_guard_that_saw_too_little_fails() -> None:
    with pytest.raises(AssertionError, match="seen 1 requests"):
        PrefixGuard([body(user("a"))]).check()


@given(st.lists(st.text(), min_size=1, max_size=5), st.data())
def test_every_growth_passes_and_every_other_text_is_found(texts: list[str], data: st.DataObject) -> None:
    messages = [user(text) for text in texts]
    kept = data.draw(st.integers(1, len(messages)))
    assert PrefixGuard([body(*messages[:kept])]).add(body(*messages)) is None
    place = data.draw(st.integers(0, kept - 1))
    changed = [*messages]
    changed[place] = user(texts[place] + "!")
    change = PrefixGuard([body(*messages[:kept])]).add(body(*changed))
    assert change is not None and change.path == f"messages[{place}].content[0].text"
