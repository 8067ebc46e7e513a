"""Where keys come from, and what is shown of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked

from openheim.cli.config_checks import all_findings
from openheim.config.describing import described
from openheim.config.load import load_config
from openheim.config.masking import is_secret_name, masked, without_credentials
from openheim.config.secrets import require_keyring
from openheim.config.selection import resolve_entry
from openheim.errors import ConfigError
from tests.config.conftest import Write, put


class MemoryKeyring(KeyringBackend):
    """A keyring of the real package's, in memory."""

    priority = 1  # type: ignore[assignment]  # a class property there

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.locked:
            raise KeyringLocked("canary")
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password


@pytest.fixture
def kept() -> Iterator[MemoryKeyring]:
    before, mine = keyring.get_keyring(), MemoryKeyring()
    keyring.set_keyring(mine)
    yield mine
    keyring.set_keyring(before)


def key_of(name: str = "x", **environment: str) -> str:
    return resolve_entry(load_config(environment={}).config, name, environment)[0].api_key


def test_a_key_may_be_elsewhere(write: Write, tmp_path: Path, kept: MemoryKeyring) -> None:
    base = '[providers.x]\napi_base = "https://h"\n'
    write(base + 'api_key = { env = "THEIRS" }\n')
    assert key_of(THEIRS="from-env") == "from-env"
    write(base + f'api_key = {{ file = "{put(tmp_path / "key", "from-file" + chr(10))}" }}\n')
    assert key_of() == "from-file"
    keyring.set_password("openheim", "work", "from-keyring")
    write(base + 'api_key = { keyring = "work" }\n')
    assert key_of() == "from-keyring"
    # The variable of the entry wins over all of them.
    write(base + 'env_var = "MINE"\napi_key = { keyring = "work" }\n')
    assert key_of(MINE="from-variable") == "from-variable"
    assert key_of(MINE=" ") == "from-keyring"


@pytest.mark.parametrize(
    ("key", "complaint", "hint"),
    [
        ('{ env = "THEIRS" }', "the variable THEIRS is not set", "set THEIRS"),
        ('{ file = "/nonexistent" }', "cannot read the key file of provider 'x': No such file", "check path"),
        ('{ keyring = "none" }', "the keyring holds no key 'none'", "keyring set openheim none"),
        ('"two\\nlines"', "holds a line break or a character that no key has", "copy the key anew"),
        ('"smart\u2019quote"', "holds a line break or a character that no key has", "copy the key anew"),
    ],
)
def test_a_key_that_is_not_where_the_entry_says(
    write: Write, kept: MemoryKeyring, key: str, complaint: str, hint: str
) -> None:
    write(f'[providers.x]\napi_base = "https://h"\napi_key = {key}\n')
    with pytest.raises(ConfigError) as caught:
        key_of()
    assert complaint in caught.value.message
    assert hint in caught.value.hint
    assert "two" not in str(caught.value) and "smart" not in str(caught.value)


def test_an_empty_key_file_is_an_error(write: Write, tmp_path: Path) -> None:
    write(f'[providers.x]\napi_base = "https://h"\napi_key_file = "{put(tmp_path / "key", chr(10))}"\n')
    with pytest.raises(ConfigError, match="api_key_file of provider 'x' is empty"):
        key_of()


def test_a_keyring_that_cannot_be_read(write: Write, kept: MemoryKeyring, monkeypatch: pytest.MonkeyPatch) -> None:
    write('[providers.x]\napi_base = "https://h"\napi_key = { keyring = "work" }\n')
    kept.locked = True
    with pytest.raises(ConfigError, match="the keyring cannot be read for provider 'x': KeyringLocked") as caught:
        key_of()
    assert "canary" not in str(caught.value)
    require_keyring("x")
    assert all_findings() == ([], [])
    monkeypatch.setitem(sys.modules, "keyring", None)
    errors, (warning,) = all_findings()
    assert (errors, "the keyring package is not installed" in warning.text) == ([], True)
    with pytest.raises(ConfigError, match="the keyring package is not installed") as caught:
        key_of()
    assert caught.value.hint == "pip install 'openheim-core[keyring]'"


def test_plain_http_is_refused_with_a_key_from_anywhere(write: Write, kept: MemoryKeyring) -> None:
    keyring.set_password("openheim", "work", "k")
    write('[providers.x]\napi_base = "http://h"\napi_key = { keyring = "work" }\n')
    with pytest.raises(ConfigError, match="plain http"):
        key_of()


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "127.9.9.9", "[::1]:8080", "localhost", "LocalHost:4000"])
def test_plain_http_may_carry_a_key_on_this_machine(write: Write, host: str) -> None:
    write(f'[providers.x]\napi_base = "http://{host}/v1"\napi_key = "k"\n')
    assert key_of() == "k"
    assert all_findings()[0] == []


@pytest.mark.parametrize(
    "host", ["128.0.0.1", "127.0.0.1.example", "localhost.example", "[::2]", "0.0.0.0", "127.0.0.1@h", "u@127.0.0.1"]
)
def test_plain_http_carries_no_key_to_another_machine(write: Write, host: str) -> None:
    write(f'[providers.x]\napi_base = "http://{host}/v1"\napi_key = "k"\n')
    with pytest.raises(ConfigError, match=r"'x' would send its key over plain http.*config check"):
        key_of()
    (error,), _ = all_findings()
    assert "the key of [providers.x] would go over plain http" in error.text
    assert (error.key, error.line) == ("providers.x.api_key", 3)


def test_a_proxy_would_read_the_key_too(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = '[providers.x]\napi_base = "http://127.0.0.1/v1"\napi_key = "k"\n'
    write(entry + '[http]\nproxy = "http://proxy.example"\n')
    with pytest.raises(ConfigError, match="plain http"):
        key_of()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert key_of() == "k"


def test_more_than_one_place_for_a_key(write: Write, tmp_path: Path) -> None:
    file = put(tmp_path / "key", "from-file")
    write(f'[providers.x]\napi_base = "https://h"\napi_key = "inline"\napi_key_file = "{file}"\n')
    assert key_of() == "inline"
    errors, warnings = all_findings()
    (warning,) = (one for one in warnings if "more than one" in one.text)
    assert not errors and "[providers.x] has more than one place for its key: api_key, api_key_file" in warning.text
    assert (warning.line, "inline" in warning.text) == (4, False)


@pytest.mark.parametrize("text", ["$MY_KEY", "${MY_KEY}", " $MY_KEY "])
def test_a_variable_written_as_in_a_shell(write: Write, text: str) -> None:
    write(f'[providers.x]\napi_base = "https://h"\napi_key = "{text}"\n')
    (at_start,) = load_config(environment={}).warnings
    (in_check,) = (one.text for one in all_findings()[1] if "as it stands" in one.text)
    for shown in (at_start, in_check):
        assert "providers.x.api_key is sent as it stands" in shown and '{ env = "MY_KEY" }' in shown


@pytest.mark.parametrize("base", ["https://h/v1/chat/completions", "https://h/v1/messages/"])
def test_an_address_that_holds_the_path_of_a_request(write: Write, base: str) -> None:
    write(f'[providers.x]\napi_base = "{base}"\n')
    (at_start,) = load_config(environment={}).warnings
    assert "providers.x.api_base ends in /" in at_start and "take that off" in at_start


def test_an_address_whose_path_only_looks_like_one_of_a_request(write: Write) -> None:
    write('[providers.x]\napi_base = "https://h/my-models"\n')
    assert not load_config(environment={}).warnings


@pytest.mark.parametrize(
    ("key", "meant"), [("api_bsae", "api_base"), ("defautl_model", "default_model"), ("presett", "preset")]
)
def test_a_slip_is_told_once_whoever_the_key_belongs_to(write: Write, key: str, meant: str) -> None:
    write(f'[providers.x]\nkind = "openai_compatible"\n{key} = "a"\n')
    errors, warnings = all_findings()
    (error,) = errors
    assert (error.key, error.line, error.hint) == (f"providers.x.{key}", 3, f"did you mean {meant}?")
    assert f"{key}: unknown key" in error.message and not warnings


# --- what is shown ---


@pytest.mark.parametrize(
    "name",
    (
        "api_key apiKey API-KEY key search_key secret client_secret token auth_token password passwd passphrase "
        "Authorization cookie credentials"
    ).split(),
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    (
        "max_tokens reserve_tokens max_tokens_field api_key_file token_path key_env access_key_id monkey keyring "
        "timeout_secs default_model turnkey"
    ).split(),
)
def test_names_that_are_none(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://h/v1", "https://h/v1"),
        ("https://user:canary@h:8/v1?key=canary#canary", "https://h:8/v1"),
        ("https://canary@h", "https://h"),
        ("http://u:can@ary@h/x", "http://h/x"),
        ("user:canary@proxy:3128", "proxy:3128"),
        ("edit_file(src/**)", "edit_file(src/**)"),
        ("what is this?", "what is this?"),
        ("me@example.org", "me@example.org"),
    ],
)
def test_addresses_are_shown_without_credentials(text: str, shown: str) -> None:
    assert without_credentials(text) == shown


def test_what_is_masked() -> None:
    cases: list[tuple[tuple[str, ...], Any, Any]] = [
        (("providers", "my-key", "kind"), "openai", "openai"),
        (("providers", "x", "api_key"), "canary", "***"),
        (("providers", "x", "api_key"), "", ""),
        (("providers", "x", "api_key", "keyring"), "work", "work"),
        (("providers", "x", "extra_headers"), {"X": "canary"}, {"X": "***"}),
        (("providers", "x", "extra_body"), {"a": [{"token": "canary"}, 1]}, {"a": [{"token": "***"}, 1]}),
        (("tools", "web", "search_key"), "canary", "***"),
        (("tools", "web", "search_keys"), ["canary", "canary"], ["***", "***"]),
        (("transports", "ws", "token"), "canary", "***"),
        (("mcp_servers", "m", "env", "ANY"), "canary", "***"),
        (("mcp_servers", "m", "args"), ["--token", "canary"], "2 arguments"),
        (("mcp_servers", "m", "args"), ["canary"], "1 argument"),
        (("http", "proxy"), "http://u:canary@h:1", "http://h:1"),
    ]
    assert [masked(path, value) for path, value, _shown in cases] == [shown for _path, _value, shown in cases]


CANARIES = """
[providers.x]
api_base = "https://u:canary@h/v1?k=canary"
api_key = "canary"
extra_headers = { Authorization = "canary" }
own_secret = "canary"
[tools.web]
key = "canary"
nested = { token = "canary" }
[gates.g]
password = "canary"
[transports.ws]
token = "canary"
[http]
proxy = "http://u:canary@h"
[mcp_servers.m]
command = "c"
args = ["canary"]
env = { A = "canary" }
[mcp_servers.n]
url = "https://u:canary@h/?canary"
headers = { A = "canary" }
"""


def test_nothing_shows_a_secret(write: Write) -> None:
    write(CANARIES)
    loaded = load_config(
        environment={"OPENHEIM_PROVIDERS__Y__API_KEY": "canary"}, flags={"tools": {"z": {"key": "canary"}}}
    )
    assert loaded.config.providers["y"].api_key == "canary"
    assert "canary" not in repr(loaded) + str(loaded) + repr(loaded.config) + "".join(map(repr, loaded.layers))
    assert "canary" not in repr(list(described(loaded)))
