"""``openheim models --refresh``: what services say of their models, kept and used."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.command import Command
from tests.support.openai_server import OpenAIServer
from tests.support.openai_wire import error, text
from tests.support.replies import Reply, raw

KEY = "sk-canary-1234567890"


def listing(*entries: Any) -> Reply:
    return raw(json.dumps({"object": "list", "data": list(entries)}), content_type="application/json")


SIZED = listing(
    {"id": "big", "context_window": 200_000, "max_output_tokens": 32_000}, {"id": "small", "max_model_len": 2000}
)


def test_what_a_service_lists_is_kept_and_shown(openheim: Command) -> None:
    with OpenAIServer(models=SIZED) as server:
        openheim.use(server, 'default_model = "big"')
        ended = openheim("models", "--refresh")
        assert (ended.code, ended.err) == (0, "")
    shown = [line.split() for line in ended.out.splitlines()]
    assert ["test", "big", "200,000", "32,000"] in shown and ["test", "small", "2,000", "unknown"] in shown
    # From now on without the service.
    assert openheim("models").out == ended.out
    entry = openheim("models", "--json").json["providers"]["test"]
    assert entry["listed"] == [
        {"id": "big", "context_window": 200_000, "max_output_tokens": 32_000},
        {"id": "small", "context_window": 2000, "max_output_tokens": None},
    ]
    assert entry["refreshed_at"].endswith("Z") and entry["models"] == []
    # Only what the settings allow is offered.
    openheim.use(server, 'models = ["small"]')
    assert [model["id"] for model in openheim("models", "--json").json["providers"]["test"]["listed"]] == ["small"]


def test_a_list_belongs_to_the_address_that_it_came_from(openheim: Command) -> None:
    with OpenAIServer(models=SIZED) as server:
        openheim.use(server)
        assert openheim("models", "--refresh").code == 0
    openheim.configure('[providers.test]\napi_base = "https://elsewhere.example/v1"\ndefault_model = "big"\n')
    assert "listed" not in openheim("models", "--json").json["providers"]["test"]


def long_prompts(openheim: Command, server: OpenAIServer) -> list[int]:
    """How many messages each of two requests held."""
    openheim("run", "word " * 1500)
    openheim("run", "--continue", "and now?")
    return [len(request.json["messages"]) for request in server.prompts]


def test_the_window_that_is_listed_is_heeded(openheim: Command) -> None:
    with OpenAIServer([text("a", usage=None)] * 2, models=SIZED) as server:
        openheim.use(server, 'default_model = "small"')
        openheim("models", "--refresh")
        assert long_prompts(openheim, server) == [2, 2]
        assert all("max_tokens" not in request.json for request in server.prompts)


def test_the_settings_win_over_what_is_listed(openheim: Command) -> None:
    with OpenAIServer([text("a", usage=None)] * 2, models=SIZED) as server:
        openheim.use(server, 'default_model = "small"\ncontext_window = 100000')
        openheim("models", "--refresh")
        assert long_prompts(openheim, server) == [2, 4]


def test_no_key_is_kept(openheim: Command) -> None:
    with OpenAIServer(models=SIZED) as server:
        # Keys go over https only, so the address is a listing of another entry's making.
        openheim.configure(
            f'[providers."my entry/1"]\nkind = "openai_compatible"\napi_base = "{server.base_url}"\n'
            f'extra_headers = {{ x-note = "{KEY}" }}\ndefault_model = "big"\n'
        )
        assert openheim("models", "--refresh").code == 0
        assert server.requests[0].headers["x-note"] == KEY
    (file,) = (openheim.home / "models").iterdir()
    assert KEY not in file.read_text() and "=" in file.name
    assert "big" in openheim("models").out


@pytest.mark.parametrize(
    "answer",
    [
        error(500, "broken"),
        raw("<html>sign in</html>", content_type="text/html"),
        raw(b'{"data": ' + b"[" * 100_000, content_type="application/json"),
        raw(b'{"data": [' + b'{"id": "x"},' * 2_000_000 + b'{"id": "y"}]}', content_type="application/json"),
    ],
    ids=["failure", "page", "nested", "huge"],
)
def test_a_bad_answer_leaves_the_old_list(openheim: Command, answer: Reply) -> None:
    with OpenAIServer(models=SIZED) as server:
        openheim.use(server, 'default_model = "big"')
        openheim("models", "--refresh")
        (file,) = (openheim.home / "models").iterdir()
        before = file.read_bytes()
        server.models = answer
        ended = openheim("models", "--refresh")
    assert ended.code == 1 and "200,000" in ended.out
    assert len(ended.err.splitlines()) == 1 and ended.err.startswith("warning: provider 'test': ")
    assert file.read_bytes() == before


def test_odd_entries_are_left_out(openheim: Command) -> None:
    odd = listing(
        {"id": "ok", "context_window": -5, "max_output_tokens": True},
        {"id": "\x1b[31mred"},
        {"id": ""},
        {"id": "x" * 1000},
        {"id": 7},
        "text",
        {"id": "ok", "context_window": 10},
        {"id": "huge", "context_window": 10**30},
    )
    with OpenAIServer(models=odd) as server:
        openheim.use(server, 'default_model = "ok"')
        ended = openheim("models", "--refresh", "--json")
    assert ended.json["providers"]["test"]["listed"] == [
        {"id": "huge", "context_window": None, "max_output_tokens": None},
        {"id": "ok", "context_window": None, "max_output_tokens": None},
    ]


def test_a_list_that_is_too_long_is_cut_and_told(openheim: Command) -> None:
    with OpenAIServer(models=listing(*({"id": f"m{number}"} for number in range(10_001)))) as server:
        openheim.use(server, 'default_model = "m1"')
        ended = openheim("models", "--refresh", "--json")
    assert ended.code == 0
    assert "warning: provider 'test' lists more than 10000 models" in ended.err
    assert len(ended.json["providers"]["test"]["listed"]) == 10_000


def test_a_damaged_list_is_as_good_as_none(openheim: Command) -> None:
    with OpenAIServer([text("hi")], models=SIZED) as server:
        openheim.use(server, 'default_model = "big"')
        openheim("models", "--refresh")
        (file,) = (openheim.home / "models").iterdir()
        file.write_text(file.read_text()[:50])
        assert "listed" not in openheim("models", "--json").json["providers"]["test"]
        assert openheim("run", "hi").out == "hi\n"


def test_one_that_fails_does_not_keep_the_others(openheim: Command) -> None:
    with OpenAIServer(models=SIZED) as server:
        broken = '[providers.broken]\napi_base = "http://127.0.0.1:9/v1"\ndefault_model = "m"\n[providers.demo]'
        openheim.use(server, f'default_model = "big"\n{broken}', top='default_provider = "test"')
        ended = openheim("models", "--refresh")
    assert ended.code == 1 and "200,000" in ended.out
    assert "warning: provider 'broken'" in ended.err and "'test'" not in ended.err
