"""What child processes of tools are told of the environment."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from openheim.agent.environment import filtered_environment
from openheim.testing import ScriptedProvider
from tests.runtime.test_live import make_runtime


@pytest.mark.parametrize(
    ("name", "value", "passes"),
    [
        ("PATH", "/bin", True),
        ("HOME", "/home/me", True),
        ("PWD", "/home/me", True),
        ("SSH_AUTH_SOCK", "/run/agent", True),
        ("GIT_AUTHOR_NAME", "Me", True),
        ("LANG", "C.UTF-8", True),
        ("PROXY_HOST", "http://proxy:3128", True),
        ("OPENAI_API_KEY", "x", False),
        ("OPENAIKEY", "x", False),
        ("GH_PAT", "x", False),
        ("GITHUB_TOKEN", "x", False),
        ("AWS_SECRET_ACCESS_KEY", "x", False),
        ("DB_PASSWORD", "x", False),
        ("PGPASSWORD", "x", False),
        ("DATABASE_URL", "postgres://u:p@host/db", False),
        ("https_proxy", "http://user:pw@proxy:1", False),
        ("OLDPWD", "/home", True),
        ("DB_CWD", "/home/me", True),
        ("GIT_SSH_COMMAND", "ssh -o User=me", True),
        ("DATABASE_HOST", "postgres://db:5432/name", True),
        ("REGISTRY", "http://localhost:4873/@scope", True),
        ("DISK", "/dev/disk-by-some-long-label-0001", True),
        ("COMMIT", "3283dec0b1d5f1f2d3c4b5a69788796a5b4c3d2e", True),
        ("MYSQL_PWD", "x", False),
        ("mssql_pwd", "x", False),
        ("SESSION_JWT", "x", False),
        ("BEARER", "x", False),
        ("SENTRY_DSN", "x", False),
        ("SLACK_WEBHOOK_URL", "x", False),
        ("AZURE_STORAGE_CONNECTION_STRING", "x", False),
        ("SQL_CONN_STR", "x", False),
        ("REDIS", "redis://:pw@host:6379/0", False),
        ("MAIN_DB", "postgres://u:p/w@host/db", False),
        ("LIBPQ", "host=db user=me password=x", False),
        ("SQL", "Server=db;Pwd=x;", False),
        ("JAVA_OPTS", "-Djavax.net.ssl.keyStorePassword=x", False),
        ("STORAGE", "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=x==", False),
        ("SESSION", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJtZSJ9.c2lnbmVk", False),
        ("TWO_URLS", "http://a:1/ x://u:p@host", False),
        ("PEOPLE", "see http://host:x or me@example.com", True),
        ("AUTHOR", "http://host:8080/@me", True),
        ("PREFIXED", "token=a-eyJhbGciOiJI.eyJz", False),
        ("MODULE", "keyJhbGciOiJIUzI1.eyJzdWIi", True),
        ("VERSION", "eyJhbGci.eyJzdWIi", True),
        ("ASSISTANT", "sk-proj-0123456789abcdef", False),
        ("CI_BOT", "ghp_0123456789abcdefghij", False),
        ("CHAT_BOT", "xoxb-123456789012-abcdef", False),
        ("CLOUD_ID", "AKIAIOSFODNN7EXAMPLE", False),
        ("CERT", "-----BEGIN RSA PRIVATE KEY-----\nMIIE", False),
        ("NOTIFY", "https://hooks.slack.com/services/T0/B0/x", False),
        ("ACME", "is canary inside", False),
        ("NAMED", "x", False),
    ],
)
def test_variables(name: str, value: str, passes: bool) -> None:
    shown = filtered_environment({name: value}, hidden_names=["NAMED"], secrets=["canary", "x", ""])
    assert (name in shown) is passes


@pytest.mark.parametrize(
    "piece", ["http://a:b/c,", "://a:", "-eyJaaaaaaaa", "sk-a ", "password ", "-----BEGIN A ", "a.@"]
)
def test_long_values_take_little_time(piece: str) -> None:
    """Minutes, if each beginning of a secret were followed to the end."""
    value = piece * 100_000
    began = time.process_time()
    assert filtered_environment({"ACME": value}) == {"ACME": value}
    assert filtered_environment({"ACME": f"{value} a://b:c@d"}) == {}
    assert filtered_environment({"ACME": f"{value} eyJhbGciOiJI.eyJz"}) == {}
    assert time.process_time() - began < 5


def test_keys_of_providers_that_are_not_in_use_are_hidden_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_LLM", "canary-1")
    monkeypatch.setenv("COPY_OF_IT", "--with canary-1")
    monkeypatch.setenv("INLINE_COPY", "canary-2")
    settings = {
        "providers": {
            "acme": {"api_base": "https://acme.example/v1", "env_var": "ACME_LLM"},
            "inline": {"api_base": "https://inline.example/v1", "api_key": "canary-2"},
        }
    }
    runtime = make_runtime(settings=settings)
    runtime.new_session(provider=ScriptedProvider([]), cwd=tmp_path)
    assert "canary" not in str(runtime.tool_env())
    assert "PATH" in runtime.tool_env()


@pytest.mark.parametrize(
    "value",
    [
        "Authorization: Bearer abcdef123456",
        "AUTHORIZATION: bearer abcdef123456",
        "Basic dXNlcjpwYXNz",
        "//registry.example/:_authToken=abc",
        "rk_test_abcdefghijklmnop",
        "hvs.abcdefghijklmnop",
    ],
)
def test_values_that_carry_a_credential(value: str) -> None:
    assert filtered_environment({"ANY": value}) == {}


@pytest.mark.parametrize("value", ["basic auth", "a bearer of news", "authorization", "the basics are here now"])
def test_words_alone_are_no_credential(value: str) -> None:
    assert filtered_environment({"ANY": value}) == {"ANY": value}


def git(**settings: str) -> dict[str, str]:
    pairs = [(key.replace("__", "."), value) for key, value in settings.items()]
    found = {"GIT_CONFIG_COUNT": str(len(pairs))}
    for number, (key, value) in enumerate(pairs):
        found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return found


def test_settings_of_git_pass_whole_but_for_secrets() -> None:
    given = git(http__extraheader="X-Any: thing", safe__directory="/src", core__pager="cat", url__token="abcd")
    assert filtered_environment(given) == git(safe__directory="/src", core__pager="cat")
    assert filtered_environment(git(http__extraheader="Authorization: Bearer abcdef123456")) == {}


@pytest.mark.parametrize("count", ["", "-1", "x", "²", "99999"])
def test_settings_of_git_that_cannot_be_read_are_left_out(count: str) -> None:
    assert filtered_environment(git(safe__directory="/src") | {"GIT_CONFIG_COUNT": count}) == {}


def test_half_a_setting_of_git_is_left_out() -> None:
    given = git(safe__directory="/a", core__pager="cat")
    del given["GIT_CONFIG_VALUE_0"]
    assert filtered_environment(given) == git(core__pager="cat")


#: As long as a variable may be on Linux.
LONGEST = 128 * 1024


@pytest.mark.parametrize("piece", ["http://a:b/c,", "://a:", "-eyJaaaaaaaa", "-----BEGIN A", "pass ", "bearer ", "sk-"])
def test_no_value_takes_long(piece: str) -> None:
    environment = {"ANY": (piece * LONGEST)[:LONGEST]}
    start = time.process_time()
    filtered_environment(environment)
    # It took seconds where a repetition had no bound.
    assert time.process_time() - start < 1
