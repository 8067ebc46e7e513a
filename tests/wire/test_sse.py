"""The decoder of server-sent events: every form of line end and field, cut anywhere."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openheim.errors import ProviderError
from openheim.sse import SSEDecoder, SSEEvent


def decoded(pieces: Iterable[bytes]) -> list[SSEEvent]:
    decoder = SSEDecoder()
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return events + decoder.flush()


def cut(body: bytes, offsets: Iterable[int]) -> list[bytes]:
    edges = [0, *sorted(offsets), len(body)]
    return [body[start:end] for start, end in pairwise(edges)]


STREAMS: dict[str, tuple[bytes, list[SSEEvent]]] = {
    "LF": (b"data: a\n\ndata: b\n\n", [SSEEvent("a"), SSEEvent("b")]),
    "CR LF": (b"data: a\r\n\r\ndata: b\r\n\r\n", [SSEEvent("a"), SSEEvent("b")]),
    "CR": (b"data: a\r\rdata: b\r\r", [SSEEvent("a"), SSEEvent("b")]),
    "mixed line ends": (b"data: a\r\n\ndata: b\n\r\ndata: c\r\n\r", [SSEEvent("a"), SSEEvent("b"), SSEEvent("c")]),
    "byte order mark": (b"\xef\xbb\xbfdata: a\n\n", [SSEEvent("a")]),
    "byte order mark only at the start": (b"data: \xef\xbb\xbfa\n\n", [SSEEvent("\ufeffa")]),
    "several data lines": (b"data: a\ndata: b\ndata:\ndata: c\n\n", [SSEEvent("a\nb\n\nc")]),
    "no space": (b"data:a\n\n", [SSEEvent("a")]),
    "only one space goes": (b"data:  a \n\n", [SSEEvent(" a ")]),
    "field without colon": (b"data\n\n", [SSEEvent("")]),
    "named": (b"event: ping\ndata: a\n\ndata: b\n\n", [SSEEvent("a", "ping"), SSEEvent("b")]),
    "name without data is no event": (b"event: ping\n\ndata: a\n\n", [SSEEvent("a")]),
    "comments": (b": hello\n\n:\ndata: a\n: there\ndata: b\n\n:end", [SSEEvent("a\nb")]),
    "other fields": (b"id: 1\nretry: 5\nfoo: bar\ndata: a\n\n", [SSEEvent("a")]),
    "many blank lines": (b"\n\n\ndata: a\n\n\n\n\ndata: b\n\n\n", [SSEEvent("a"), SSEEvent("b")]),
    "last blank line missing": (b"data: a\n\ndata: b\n", [SSEEvent("a"), SSEEvent("b")]),
    "last line end missing": (b"data: a\n\ndata: b", [SSEEvent("a"), SSEEvent("b")]),
    "last CR": (b"data: a\r", [SSEEvent("a")]),
    "characters of many bytes": ("data: é€😀\n\n".encode(), [SSEEvent("é€😀")]),
    "no character": (b"data: a\xffb\n\n", [SSEEvent("a\ufffdb")]),
    "separators that are no line ends": ("data: a\u2028b\x85c\x0bd\n\n".encode(), [SSEEvent("a\u2028b\x85c\x0bd")]),
    "nothing": (b"", []),
}


@pytest.mark.parametrize("name", STREAMS)
def test_streams_however_they_are_cut(name: str) -> None:
    body, expected = STREAMS[name]
    assert decoded([body]) == expected
    assert decoded(body[at : at + 1] for at in range(len(body))) == expected
    for offset in range(len(body)):
        assert decoded(cut(body, [offset])) == expected
        assert decoded([*cut(body, [offset]), b""]) == expected


LINE_ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
TEXTS = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=20)


@given(st.lists(st.tuples(st.lists(TEXTS, min_size=1, max_size=3), LINE_ENDS), max_size=5), st.data())
def test_any_events_however_they_are_cut(events: list[tuple[list[str], bytes]], data: st.DataObject) -> None:
    body = b"".join(end.join(f"data: {line}".encode() for line in lines) + end + end for lines, end in events)
    offsets = data.draw(st.lists(st.integers(0, len(body)), max_size=10))
    assert decoded(cut(body, offsets)) == [SSEEvent("\n".join(lines)) for lines, _ in events]


def test_events_come_as_soon_as_they_are_complete() -> None:
    decoder = SSEDecoder()
    assert decoder.feed(b"data: a\n") == []
    assert decoder.feed(b"\ndata: b\r\n\r") == [SSEEvent("a"), SSEEvent("b")]
    assert decoder.feed(b"\ndata: c\n\n") == [SSEEvent("c")]


def test_blank_lines_are_nothing() -> None:
    decoder = SSEDecoder()
    assert decoder.feed(b"\n" * 50_001) == []
    assert decoder.feed(b"\n\ndata: a\n\n\n\n\n" + b"\n" * 50_000 + b"data: b\n\n") == [SSEEvent("a"), SSEEvent("b")]


def test_an_event_that_does_not_end_is_refused() -> None:
    decoder = SSEDecoder(max_event_bytes=1000)
    decoder.feed(b"data: " + b"x" * 900)
    with pytest.raises(ProviderError, match="more than 1000 bytes") as caught:
        decoder.feed(b"x" * 200)
    assert not caught.value.retryable


def test_long_events_within_the_limit_come_whole() -> None:
    text = "word " * 200_000
    body = f"data: {text}\n\n".encode()
    assert decoded(body[at : at + 65536] for at in range(0, len(body), 65536)) == [SSEEvent(text)]
