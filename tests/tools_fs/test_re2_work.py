"""RE2's time is in proportion to text and pattern; a search that meets much of both can be ended all the same."""

from __future__ import annotations

import pytest

from openheim_tools_fs.matching import MAX_WORK, MIN_TEXT, open_matcher

pytest.importorskip("re2", reason="install openheim-tools-fs[re2]")

#: A pattern whose program is large: RE2 writes counted repetitions out.
COUNTS_HIGH = "x[^;]{0,800};"


class Ended(Exception):
    pass


def hits(pattern: str, text: bytes) -> tuple[list[int], int]:
    """The hits, and how often it could have been ended meanwhile."""
    checks = 0

    def check() -> None:
        nonlocal checks
        checks += 1

    with open_matcher(pattern, ignore_case=False, check=check) as matcher:
        return list(matcher.hits(text)), checks


@pytest.mark.parametrize("pattern", [COUNTS_HIGH, "x[^;]*;", "^x", ";$", r"\bx"])
@pytest.mark.parametrize("line", [b"x;\n", b"-" * 300 + b"x-;\n", b"x" * 900 + b";\n", b"x;\r\n"])
@pytest.mark.parametrize("end", [b"", b"x;"])
def test_a_long_text_in_parts_has_the_same_hits(
    monkeypatch: pytest.MonkeyPatch, pattern: str, line: bytes, end: bytes
) -> None:
    text = line * 400 + end
    monkeypatch.setattr("openheim_tools_fs.matching.MAX_WORK", 10**12)
    whole, checks = hits(pattern, text)
    assert checks == 0
    monkeypatch.setattr("openheim_tools_fs.matching.MAX_WORK", 1)
    monkeypatch.setattr("openheim_tools_fs.matching.MIN_TEXT", 1000)
    in_parts, checks = hits(pattern, text)
    assert in_parts == whole
    assert checks >= len(text) // 1000 - 1


def test_a_pattern_that_counts_high_can_be_ended_within_one_line() -> None:
    checks = 0

    def check() -> None:
        nonlocal checks
        checks += 1
        if checks == 3:
            raise Ended

    with open_matcher(COUNTS_HIGH, ignore_case=False, check=check) as matcher, pytest.raises(Ended):
        list(matcher.hits(b"x" * 8 * 1024 * 1024))


def test_a_line_in_parts_counts_once() -> None:
    line = b"x;" * MIN_TEXT
    places, checks = hits(COUNTS_HIGH, line + b"\n" + line)
    assert (places, checks > 2) == ([0, len(line) + 1], True)


def test_usual_patterns_see_the_longest_lines_whole() -> None:
    places, checks = hits(r"x-*\d{1,3}y", b"x" + b"-" * (MAX_WORK // 200) + b"17y")
    assert (places, checks) == ([0], 0)
