"""What child processes of tools are told of the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from openheim.agent.turn import filtered_environment
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
        ("ACME", "is canary inside", False),
        ("NAMED", "x", False),
    ],
)
def test_variables(name: str, value: str, passes: bool) -> None:
    shown = filtered_environment({name: value}, hidden_names=["NAMED"], secrets=["canary", "x", ""])
    assert (name in shown) is passes


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
