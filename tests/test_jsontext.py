"""JSON as it is written and read: nothing that other readers refuse, whatever comes in."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openheim.jsontext import MAX_DEPTH, TextPieces, dump_bytes, dump_text, is_object, parse, plain, wire_bytes

NAN, INF = float("nan"), float("inf")


def strictly(text: str | bytes) -> Any:
    """Reads JSON as programs do that know no NaN."""

    def refuse(constant: str) -> Any:
        raise AssertionError(f"{constant} was written")

    return json.loads(text, parse_constant=refuse)


def circular() -> list[Any]:
    ring: list[Any] = [1]
    ring.append(ring)
    return ring


def nested(levels: int) -> list[Any]:
    deep: list[Any] = []
    for _ in range(levels):
        deep = [deep]
    return deep


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError


# --- writing ---


def test_a_line_is_a_line_to_every_reader() -> None:
    text = dump_text({"a": "x\u2028y\u2029z\u0085é\ud800", "b": [1, 2.5, None]})
    assert text == '{"a":"x\\u2028y\\u2029z\\u0085é\\ud800","b":[1,2.5,null]}'
    assert len(text.splitlines()) == 1
    assert strictly(text)["a"] == "x\u2028y\u2029z\u0085é\ud800"
    assert dump_bytes("é") == '"é"'.encode()


def test_a_request_has_no_halves_of_characters() -> None:
    assert wire_bytes({"a": "b\udc00 \ud83d\ude00"}) == '{"a":"b\ufffd 😀"}'.encode()


@pytest.mark.parametrize("value", [NAN, INF, -INF, [1, {"a": NAN}], {1, 2}, b"x", circular(), nested(100_000)])
def test_a_request_is_refused_that_json_cannot_say(value: Any) -> None:
    with pytest.raises((ValueError, TypeError, RecursionError)):
        wire_bytes(value)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"a": NAN, "b": [INF, -INF, 1.5]}, {"a": None, "b": [None, None, 1.5]}),
        (("x", frozenset((1,))), ["x", [1]]),
        ({1: "one", None: 2.0}, {"1": "one", "null": 2.0}),
        ({Path("a"): Path("b/c")}, {"a": "b/c"}),
        (circular(), [1, "…"]),
        ([1 << 60_000], [None]),
        ([Unprintable()], ["<Unprintable: RuntimeError>"]),
    ],
)
def test_files_and_streams_take_anything(value: Any, written: Any) -> None:
    assert strictly(dump_text(value)) == written


def test_what_is_nested_too_deeply_keeps_its_outside() -> None:
    written = strictly(dump_text({"kept": 1, "deep": nested(100_000)}))
    assert written["kept"] == 1
    assert json.dumps(written).endswith('"\\u2026"' + "]" * (MAX_DEPTH - 1) + "}")


class Breaking(dict[str, Any]):
    def items(self) -> Any:
        raise OSError


def test_a_mapping_that_fails_to_tell_its_items() -> None:
    assert plain([Breaking(a=1)]) == ["<Breaking: OSError>"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(JSON)
def test_what_is_json_comes_back(value: Any) -> None:
    assert parse(dump_text(value)) == parse(dump_bytes(value)) == parse(wire_bytes(value)) == value
    assert plain(value) == value


# --- reading ---

NO_JSON = ["NaN", "Infinity", "-Infinity", '{"a": NaN}', '{"a": [1, -Infinity]}', '{"a": 1e999}', "[-1e400]"]


@pytest.mark.parametrize("text", NO_JSON)
def test_numbers_that_are_not_finite_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no JSON|too large"):
        parse(text)
    assert not is_object(text)


def test_or_read_as_null() -> None:
    assert parse(b'{"a": NaN, "b": [Infinity, -1e999, 1.5]}', lenient=True) == {"a": None, "b": [None, None, 1.5]}


@pytest.mark.parametrize(
    ("text", "answer"),
    [("{}", True), (' {"a": 1.5e3}\n', True), ("[]", False), ('"{}"', False), ("", False), ("{", False)],
)
def test_objects(text: str, answer: bool) -> None:
    assert is_object(text) is answer


def test_nesting_beyond_all_bounds_is_no_object() -> None:
    assert not is_object('{"a":' * 100_000)


HALVES = [
    (["A \ud83c", "\udf89 B"], ["A ", "\U0001f389 B"], ""),
    (["\ud83c", "\udf89"], ["", "\U0001f389"], ""),
    (["\ud83c", "", "\udf89\ud83c", "\udf89"], ["", "", "\U0001f389", "\U0001f389"], ""),
    # Halves that belong to nothing stay what they are.
    (["a\ud83c", "b"], ["a", "\ud83cb"], ""),
    (["\ud83c", "\ud83c", "\udf89"], ["", "\ud83c", "\U0001f389"], ""),
    (["\udf89", "a\udf89"], ["\udf89", "a\udf89"], ""),
    (["a\ud83c"], ["a"], "\ud83c"),
    (["plain", "gr\u00fcn", "\U0001f389"], ["plain", "gr\u00fcn", "\U0001f389"], ""),
]


@pytest.mark.parametrize(("pieces", "whole", "rest"), HALVES)
def test_a_character_cut_in_two_is_put_together(pieces: list[str], whole: list[str], rest: str) -> None:
    text = TextPieces()
    assert [text.add(piece) for piece in pieces] == whole
    assert text.end() == rest
    assert text.end() == ""


@given(st.text(), st.data())
def test_any_text_cut_between_halves(text: str, data: st.DataObject) -> None:
    units = text.encode("utf-16-le", "surrogatepass")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(units) // 2)), label="cuts"))
    edges = [0, *cuts, len(units) // 2]
    pieces = [units[2 * start : 2 * end].decode("utf-16-le", "surrogatepass") for start, end in pairwise(edges)]
    joined = TextPieces()
    assert "".join([*map(joined.add, pieces), joined.end()]) == text
