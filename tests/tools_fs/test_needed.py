"""Text that a match needs: whatever an engine matches holds it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openheim_tools_fs.matching import _re2_module
from openheim_tools_fs.needed import required_text


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("find_needle", "find_needle"),
        (r"\w+_needle\(", "_needle("),
        (r"foo\.bar", "foo.bar"),
        ("a+bc", "bc"),
        ("ab?c", "a"),
        ("abc*?de", "ab"),
        ("a{2,3}bcd", "bcd"),
        ("struct x {", "struct x"),
        ("[]a]xyz", "xyz"),
        ("[^]a]xyz", "xyz"),
        ("(abc)?de", "de"),
        (r"\x41bc", ""),
        (r"\pLbc", ""),
        (r"\Qa.b\E", ""),
        ("(?i)abc", ""),
        ("(?:abc)?", ""),
        ("abc|b", ""),
        ("abc\nb", ""),
        ("[[:alpha:]]abc", ""),
        (".*", ""),
        ("grün", "gr"),
        ("a\\", "a"),
    ],
)
def test_what_is_needed(pattern: str, text: str) -> None:
    assert required_text(pattern) == text.encode()


PIECES = [*"ab.?*+^$|()[]{}-,12\\ ", "\\w", "\\b", "\\.", "[ab]", "[^a]", "{2}", "{1,}", "(a)", "(ab)?", "ab", "é"]


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), st.text("ab.12 é-{,}", max_size=20))
@settings(max_examples=1500)
def test_every_match_holds_it(pattern: str, text: str) -> None:
    needed = required_text(pattern)
    try:
        found = re.search(pattern, text)
    except (re.error, FutureWarning):
        found = None
    assert found is None or needed in found[0].encode()
    re2 = _re2_module()
    if re2 is None:
        return
    options = re2.Options()
    options.log_errors = False
    try:
        found = re2.compile(pattern, options).search(text.encode())
    except re2.error:
        return
    assert found is None or needed in found.group()
