"""Every key with its default, and what is not allowed."""

from __future__ import annotations

from typing import Any

import pytest

from openheim.config.load import load_config
from openheim.config.schema import THEME_COLORS
from openheim.errors import ConfigError
from tests.config.conftest import Write


def load() -> Any:
    return load_config(environment={})


def test_defaults() -> None:
    config = load().config
    assert (config.default_provider, config.max_iterations, config.default_skills) == (None, 10, ())
    assert (config.work_dir, config.allow_shell, config.data_dir) == (None, False, None)
    assert (config.context.strategy, config.context.reserve_tokens) == ("trim", None)
    assert (config.sessions.max_live, config.sessions.idle_secs) == (512, 7 * 24 * 3600)
    assert (config.memory.embedding_provider, config.memory.db_path, config.memory.top_k) == (None, None, 5)
    assert config.tui.theme_color == "gray"


def test_every_key_is_read(write: Write) -> None:
    write("""
default_provider = "p"
max_iterations = 20
default_skills = ["a", "b"]
work_dir = "w"
allow_shell = true
data_dir = "d"
[providers.p]
kind = "openai"
api_base = "https://h/v1"
default_model = "m"
models = ["m", "n"]
env_var = "P_KEY"
api_key = "k"
api_key_file = "f"
timeout_secs = 30
max_tokens = 100
context_window = 8000
thinking = "off"
fallback = ["q/m"]
price = { input = 1, output = 2.5, cache_read = 0.1, cache_write = 1.25 }
[mcp_servers.stdio]
command = "c"
args = ["a"]
env = { X = "1" }
[mcp_servers.http]
url = "https://h/mcp"
headers = { Authorization = "Bearer t" }
tool_timeout_secs = 1
[memory]
embedding_provider = "p"
embedding_model = "e"
db_path = "/x/memory.db"
top_k = 7
[tui]
theme_color = "pink"
[context]
strategy = "summarise"
reserve_tokens = 500
[sessions]
max_live = 3
idle_secs = 60
[http]
proxy = "http://h"
ca_file = "ca.pem"
""")
    loaded = load()
    assert loaded.warnings == ()
    config = loaded.config
    assert (config.default_provider, config.max_iterations, config.default_skills) == ("p", 20, ("a", "b"))
    assert (config.work_dir, config.allow_shell, config.data_dir) == ("w", True, "d")
    entry = config.providers["p"]
    assert (entry.kind, entry.api_base, entry.default_model, entry.models) == (
        "openai",
        "https://h/v1",
        "m",
        ("m", "n"),
    )
    assert (entry.env_var, entry.api_key, entry.api_key_file) == ("P_KEY", "k", "f")
    assert (entry.timeout_secs, entry.max_tokens, entry.context_window, entry.thinking) == (30, 100, 8000, "off")
    assert entry.fallback == ("q/m",)
    assert (entry.price.input, entry.price.output, entry.price.cache_read, entry.price.cache_write) == (
        1,
        2.5,
        0.1,
        1.25,
    )
    stdio, http = config.mcp_servers["stdio"], config.mcp_servers["http"]
    assert (stdio.command, stdio.args, stdio.env, stdio.tool_timeout_secs) == ("c", ("a",), {"X": "1"}, 600)
    assert (http.url, http.headers, http.tool_timeout_secs) == ("https://h/mcp", {"Authorization": "Bearer t"}, 1)
    assert (config.memory.embedding_provider, config.memory.embedding_model) == ("p", "e")
    assert (config.memory.db_path, config.memory.top_k) == ("/x/memory.db", 7)
    assert config.tui.theme_color == "pink"
    assert (config.context.strategy, config.context.reserve_tokens) == ("summarise", 500)
    assert (config.sessions.max_live, config.sessions.idle_secs) == (3, 60)
    assert (config.http.proxy, config.http.ca_file) == ("http://h", "ca.pem")


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        ("[mcp_servers.x]\ncommand = 'c'\ntool_timeout_secs = 0", 3, "tool_timeout_secs must be at least 1"),
        ("[mcp_servers.x]\nurl = 'http://h'\nheaders = {A = 'canary'}", 3, "headers would be sent over plain http"),
        ("[mcp_servers.x]\nurl = 'ftp://h'", 2, "url must start with http:// or https://"),
        ("[mcp_servers.x]\nurl = 'https://h'\ncommand = 'c'", 2, "url cannot stand beside command"),
        (
            "[mcp_servers.x]\nurl = 'https://h'\n[mcp_servers.x.headers]\n'a b' = 'canary'",
            4,
            'headers."a b" is no name',
        ),
        ("[mcp_servers.x]\nurl = 'https://h'\nheaders.A = \"canary\\n\"", 3, "no header may hold"),
        ("[mcp_servers.x]\ncommand = 'c'\nenv = {'A=B' = 'canary'}", 3, "is no name of a variable"),
        ("[mcp_servers.x]\nargs = 'canary'", 2, "args must be array, not string"),
        ("[memory]\nembedding_provider = 'openai'", 2, "needs embedding_model"),
        ("[memory]\nembedding_provider = 'openai'\nembedding_model = ' '", 2, "needs embedding_model"),
        ("[memory]\nembedding_model = 'm'", 2, "needs embedding_provider"),
        ("[memory]\nembedding_provider = 'anthropic'\nembedding_model = 'm'", 2, "kind anthropic"),
        (
            "[memory]\nembedding_provider = 'x'\nembedding_model = 'm'\n[providers.x]\nkind = 'anthropic'",
            2,
            "kind anthropic",
        ),
        ("[memory]\nembedding_provider = 'none'\nembedding_model = 'm'", 2, "names no provider"),
        ("[memory]\ndb_path = 'memory.db'", 2, "must be an absolute path"),
        ("[memory]\ntop_k = 0", 2, "top_k must be at least 1"),
        ("[tui]\ntheme_color = 'mauve'", 2, "must be one of white, gray"),
        ("[context]\nstrategy = 'forget'", 2, "must be one of trim, summarise"),
        ("[sessions]\nmax_live = 0", 2, "at least 1"),
        ("[plugins]\ndisable = 'x'", 2, "must be array"),
        ("[providers.x]\nenv_var = 'sk-canary'", 2, "env_var must be the name of a variable"),
        ("[providers.x]\napi_key = {}", 2, "api_key must be a text, or a table with one of env, file and keyring"),
        ("[providers.x]\napi_key = {env = 'A', file = 'canary'}", 2, "a table with one of"),
        ("[providers.x]\napi_key = {env = 'sk-canary'}", 2, "api_key.env must be the name of a variable"),
        ("[providers.x]\napi_key = 3", 2, "api_key must be string or object, not integer"),
    ],
)
def test_what_is_not_allowed(write: Write, text: str, line: int, complaint: str) -> None:
    path = write(text)
    with pytest.raises(ConfigError) as caught:
        load()
    assert f"{path}, line {line}: " in caught.value.message
    assert complaint in caught.value.message
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("color", THEME_COLORS)
def test_colours(write: Write, color: str) -> None:
    write(f"[tui]\ntheme_color = '{color}'\n")
    assert load().config.tui.theme_color == color


def test_a_server_with_nothing_to_connect_to_is_warned_of(write: Write) -> None:
    write("[mcp_servers.x]\nargs = []\n[mcp_servers.y]\nurl = 'http://127.0.0.1:1/mcp'\n")
    (warning,) = load().warnings
    assert "line 1: mcp_servers.x has neither command nor url" in warning


def test_slips_in_tables_of_names_are_warned_of(write: Write) -> None:
    write("[mcp_servers.x]\ncommand = 'c'\ncomand = 'c'\nenv = { ANYTHING = 'x' }\n")
    (warning,) = load().warnings
    assert "line 3: unknown setting mcp_servers.x.comand is ignored; did you mean command?" in warning
