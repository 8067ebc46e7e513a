"""On which line a key stands."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openheim.config.keys import parse_key, shown_key
from openheim.config.lines import key_lines, line_of
from openheim.errors import UsageError
from tests.config.conftest import put

TEXT = '''\
# a comment = 1
top = 1
dotted.key = 2
text = """
inside = 3
[not.a.table] # " \\"""
"""
literal = \'\'\'
a = 'b'
\'\'\'
list = [
  "x = 1", # y = 2
  { inner = 1 },
]
inline = { one = 1, two = { three = 3 }, "quo.ted" = 4 }

[table] # [no]
key = "[x]"
  indented = 1979-05-27 07:32:00
[table."with.dot".'x']
"k\\u0065y" = '#'
[[array]]
of = "tables"
'''

LINES = {
    "top": 2,
    "dotted": 3,
    "dotted.key": 3,
    "text": 4,
    "literal": 8,
    "list": 11,
    "list.inner": 13,
    "inline": 15,
    "inline.one": 15,
    "inline.two": 15,
    "inline.two.three": 15,
    'inline."quo.ted"': 15,
    "table": 17,
    "table.key": 18,
    "table.indented": 19,
    'table."with.dot"': 20,
    'table."with.dot".x': 20,
    'table."with.dot".x.key': 21,
    "array": 22,
    "array.of": 23,
}


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_lines_of_all_keys(tmp_path: Path, line_end: str, mark: str) -> None:
    tomllib.loads(TEXT)
    file = tmp_path / "c.toml"
    file.write_bytes((mark + TEXT).replace("\n", line_end).encode())
    assert {shown_key(path): line for path, line in key_lines(file).items()} == LINES


def test_what_holds_a_key_stands_for_one_that_is_not_there(tmp_path: Path) -> None:
    file = put(tmp_path / "c.toml", TEXT)
    assert line_of(file, ("table", "none")) == 17
    assert line_of(file, ("none",)) is None
    assert line_of(tmp_path / "none.toml", ("top",)) is None


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lines")


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab=.\"'[]{},# \n\\", max_size=60))
def test_any_text_is_taken(scratch: Path, text: str) -> None:
    file = put(scratch / "c.toml", text)
    lines = key_lines(file)
    assert all(1 <= line <= text.count("\n") + 1 for line in lines.values())
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    assert {(key,) for key in document} <= set(lines)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("max_iterations", ("max_iterations",)),
        ("permissions . mode", ("permissions", "mode")),
        ('providers."my.model".kind', ("providers", "my.model", "kind")),
        ("providers.'x'.kind", ("providers", "x", "kind")),
        ("mcp_servers.größe.url", ("mcp_servers", "größe", "url")),
        ('plugins.prefer."providers.openai"', ("plugins", "prefer", "providers.openai")),
    ],
)
def test_names_of_settings(text: str, path: tuple[str, ...]) -> None:
    assert parse_key(text) == path
    assert parse_key(shown_key(path)) == path


@pytest.mark.parametrize("text", ["", ".", "a..b", "a.", ".a", "a = 1", 'a."b', "a b"])
def test_what_names_no_setting(text: str) -> None:
    with pytest.raises(UsageError, match="names no setting"):
        parse_key(text)
