"""One value is set, checked first, and nothing else in the file changes."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from openheim.config.keys import parse_key
from openheim.config.setting import set_in_file
from openheim.errors import ConfigError, OpenheimError, UsageError
from tests.config.conftest import Write, put

FILE = """\
# first
max_iterations = 5   # five

[providers.a] # a
api_base = "https://h/v1"
models = ["m", "n"]  # both

[permissions]
deny = [
    "write_file",  # never
]
"""


def set_value(file: Path, key: str, value: str, *, cwd: Path | None = None, by_project: bool = False) -> bool:
    return set_in_file(file, parse_key(key), value, config=None, cwd=cwd or file.parent, by_project=by_project)


def test_what_is_not_utf8_is_refused(tmp_path: Path) -> None:
    file = put(tmp_path / "config.toml", FILE)
    for key, value in (("default_provider", "\udcff"), ("providers.\udcff.kind", "demo")):
        with pytest.raises(UsageError, match="not UTF-8"):
            set_value(file, key, value)
    assert file.read_text() == FILE


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("max_iterations", "9", "= 5 ", "= 9 "),
        ("providers.a.models", '["x"]', '["m", "n"]', '["x"]'),
        ("providers.a.api_base", "https://other/v1", "https://h/v1", "https://other/v1"),
        ("providers.a.default_model", "m", "\n\n[perm", '\ndefault_model = "m"\n\n[perm'),
        ("providers.a.api_key", '{ keyring = "a" }', "\n\n[perm", '\napi_key = {keyring = "a"}\n\n[perm'),
        ("allow_shell", "true", "# five\n", "# five\nallow_shell = true\n"),
        ("default_model", "x", "", None),
        ("work_dir", "true", "# five\n", '# five\nwork_dir = "true"\n'),
        ("tools.fs.any", "3", "]\n", "]\n\n[tools.fs]\nany = 3\n"),
        ("tui.theme_color", "pink", "]\n", ']\n\n[tui]\ntheme_color = "pink"\n'),
    ],
)
def test_nothing_else_changes(write: Write, key: str, value: str, old: str, new: str | None) -> None:
    file = write(FILE)
    if new is None:
        with pytest.raises(UsageError, match="there is no setting default_model"):
            set_value(file, key, value)
        assert file.read_text() == FILE
        return
    assert set_value(file, key, value)
    at = FILE.rindex(old) if old == "]\n" else FILE.index(old)
    assert file.read_text() == FILE[:at] + new + FILE[at + len(old) :]
    assert not set_value(file, key, value)


def test_marks_and_line_ends_stay(write: Write) -> None:
    file = write("")
    file.write_bytes(b"\xef\xbb\xbf# mine\r\nmax_iterations = 5 # x\r\n")
    assert set_value(file, "max_iterations", "6")
    assert file.read_bytes() == b"\xef\xbb\xbf# mine\r\nmax_iterations = 6 # x\r\n"


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        ("max_iterations", "0", "must be at least 1"),
        ("max_iterations", "many", "must be integer, not string"),
        ("permissions.mode", "fast", "must be one of default, plan"),
        ("permissions.mod", "plan", "did you mean permissions.mode?"),
        ("permisions.mode", "plan", "did you mean permissions?"),
        ("permissions", "{}", "is a section (name a key in it, such as permissions.gate)"),
        ("providers", "{}", "is a section"),
        ("providers.a", "{}", "is a section"),
        ("mcp_servers.x.env", "{}", "is a section"),
        ("mcp_servers.x.tool_timeout_secs", "0", "at least 1"),
        ("memory.embedding_model", "m", "needs embedding_provider"),
        ("providers.a.env_var", "sk-canary", "must be the name of a variable"),
        ("max_iterations.deeper", "1", "is no section"),
        ("providers.a.models.deeper", "1", "is no section"),
    ],
)
def test_what_is_wrong_is_not_written(write: Write, key: str, value: str, complaint: str) -> None:
    file = write(FILE)
    with pytest.raises(OpenheimError) as caught:
        set_value(file, key, value)
    assert complaint in str(caught.value)
    assert "canary" not in str(caught.value)
    assert file.read_text() == FILE


def test_faults_that_were_there_do_not_stand_in_the_way(write: Write) -> None:
    file = write("max_iterations = 0\n[permissions]\nmode = 'fast'\n")
    assert set_value(file, "max_iterations", "3")
    assert set_value(file, "permissions.mode", "plan")
    assert tomllib.loads(file.read_text()) == {"max_iterations": 3, "permissions": {"mode": "plan"}}


def test_a_file_that_is_no_toml_is_left_alone(write: Write) -> None:
    file = write("max_iterations = \n")
    with pytest.raises(ConfigError, match="line 1: not valid TOML"):
        set_value(file, "max_iterations", "3")
    assert file.read_text() == "max_iterations = \n"


def test_a_list_that_is_all_on_one_key_is_not_written_into(write: Write) -> None:
    """Changing the theme once put the line into the middle of an array."""
    text = 'models = [\n  "a",\n  "[tui]",\n]\n[tui]\ntheme_color = "red"\n[x]\ny = ["[tui]"]\n'
    file = write(text)
    assert set_value(file, "tui.theme_color", "pink")
    assert file.read_text() == text.replace("red", "pink")


def test_a_project_s_file(write: Write, repository: Path) -> None:
    write("[providers.mine]\napi_base = 'https://h'\n")
    file = repository / ".openheim" / "config.toml"
    assert set_value(file, "max_iterations", "3", cwd=repository, by_project=True)
    assert file.read_text() == "max_iterations = 3\n"
    for key, value in (
        ("data_dir", "x"),
        ("providers.mine.api_base", "https://other"),
        ("providers.mine.api_key", "k"),
        ("http.proxy", "http://p"),
    ):
        with pytest.raises(ConfigError, match="cannot be set by a project"):
            set_value(file, key, value, cwd=repository, by_project=True)
    with pytest.raises(ConfigError, match="must be at least 1"):
        set_value(file, "max_iterations", "0", cwd=repository, by_project=True)
    assert file.read_text() == "max_iterations = 3\n"


def test_values_beside_those_of_other_files_are_checked_too(write: Write, repository: Path) -> None:
    write("[memory]\nembedding_model = 'e'\nembedding_provider = 'p'\n[providers.p]\nkind = 'openai'\n")
    file = put(repository / ".openheim" / "config.toml", "")
    with pytest.raises(ConfigError, match="cannot be of kind anthropic"):
        set_value(file, "memory.embedding_provider", "anthropic", cwd=repository, by_project=True)
