"""Kept bytes of a conversation: always what a fresh start would give, and never rewritten without need."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openheim.fragments import Fragments, MessageParts
from openheim.messages import Message, TextBlock

FRAMES = {role: (f'{{"role":"{role}","content":['.encode(), b"]}") for role in ("user", "assistant")}


def encode(message: Message) -> MessageParts:
    role = "assistant" if message.role == "assistant" else "user"
    return MessageParts(role, [json.dumps(block.text).encode() for block in message.content if block.text])


def made(messages: list[Message], joins: bool = True) -> Fragments:
    fragments = Fragments(encode, FRAMES, lambda role: joins)
    fragments.update(messages)
    return fragments


def decoded(fragments: Fragments) -> list[tuple[str, list[str]]]:
    return [(one["role"], one["content"]) for one in json.loads(b"[%s]" % fragments.buffer)]


def message(role: str, *texts: str) -> Message:
    return Message(role, tuple(map(TextBlock, texts)))  # type: ignore[arg-type]  # a role by chance is still a role


MESSAGES = st.lists(
    st.builds(message, st.sampled_from(("user", "assistant", "tool")), *[st.sampled_from(("", "a", "bc"))] * 2),
    max_size=8,
)


def test_neighbours_of_one_role_are_one_message() -> None:
    fragments = made([message("user", "a"), message("assistant", ""), message("tool", "b"), message("assistant", "c")])
    assert decoded(fragments) == [("user", ["a", "b"]), ("assistant", ["c"])]
    first, second = fragments.fragments
    assert fragments.buffer[first.start : first.end] == b'{"role":"user","content":["a","b"]}'
    assert fragments.buffer[: first.parts_end].endswith(b'"b"')
    assert second.role == "assistant"
    apart = made([message("user", "a"), message("user", "b")], joins=False)
    assert decoded(apart) == [("user", ["a"]), ("user", ["b"])]


def test_an_unchanged_message_is_encoded_once() -> None:
    encoded = []

    def counting(one: Message) -> MessageParts:
        encoded.append(one)
        return encode(one)

    fragments = Fragments(counting, FRAMES)
    messages: list[Message] = []
    for number in range(20):
        messages.append(message("assistant" if number % 2 else "user", f"{number}"))
        fragments.update(list(messages))
    assert encoded == messages


@given(MESSAGES, st.lists(st.tuples(st.integers(0, 8), MESSAGES), max_size=4), st.booleans())
def test_whatever_changes_it_is_as_if_made_anew(
    first: list[Message], changes: list[tuple[int, list[Message]]], joins: bool
) -> None:
    fragments = made(first, joins)
    messages = first
    for kept, more in changes:
        messages = messages[:kept] + more
        before = bytes(fragments.buffer)
        unchanged = fragments.update(messages)
        fresh = made(messages, joins)
        assert fragments.buffer == fresh.buffer
        assert fragments.fragments == fresh.fragments
        assert fragments.buffer[:unchanged] == before[:unchanged]


@given(MESSAGES, MESSAGES, st.integers(0, 8), st.booleans())
def test_a_message_that_cannot_be_encoded_spoils_nothing(
    first: list[Message], more: list[Message], bad: int, joins: bool
) -> None:
    refused: list[Message] = []

    def refusing(one: Message) -> MessageParts:
        if any(one is other for other in refused):
            raise ValueError("no")
        return encode(one)

    fragments = Fragments(refusing, FRAMES, lambda role: joins)
    fragments.update(first)
    messages = first + more
    refused += messages[bad : bad + 1]
    with suppress(ValueError):
        fragments.update([*messages])
    refused.clear()
    fragments.update(messages)
    fresh = made(messages, joins)
    assert (fragments.buffer, fragments.fragments) == (fresh.buffer, fresh.fragments)


@given(MESSAGES, MESSAGES)
def test_what_is_added_changes_nothing_before_it(first: list[Message], more: list[Message]) -> None:
    fragments = made(first)
    ends = [fragment.parts_end for fragment in fragments.fragments]
    before = bytes(fragments.buffer)
    assert fragments.update(first + more) >= (ends[-1] if ends else 0)
    assert fragments.buffer[: ends[-1] if ends else 0] == before[: ends[-1] if ends else 0]


def test_a_message_that_fails_leaves_what_is_before_it_there_once() -> None:
    def encode_or_fail(message: Message) -> MessageParts:
        if message is broken:
            raise ValueError
        return encode(message)

    first, broken, more = message("user", "a"), message("user", "b"), message("assistant", "c")
    fragments = Fragments(encode_or_fail, FRAMES)
    for _ in range(2):
        with pytest.raises(ValueError):
            fragments.update([first, broken])
    fragments.update([first, more])
    assert decoded(fragments) == [("user", ["a"]), ("assistant", ["c"])]
