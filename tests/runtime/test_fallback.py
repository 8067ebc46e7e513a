"""``fallback``: who answers in place of a model that cannot, and when nobody does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from openheim import Client, ToolResult, hookimpl, tool
from openheim.errors import (
    AuthError,
    BillingError,
    BlockedError,
    ConfigError,
    ContextOverflowError,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    ProviderConnectionError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitedError,
    ServerError,
)
from openheim.messages import TextBlock, ThinkingBlock, Usage
from openheim.providers import Provider
from openheim.retry import RetryPolicy
from openheim.testing import ScriptedProvider, ScriptedReply, reply_error, reply_text, reply_tool_calls

pytestmark = pytest.mark.anyio

LIST = ["second/m2", "third/m3"]


class Wired(ScriptedProvider):
    """A scripted provider that remembers which caches it was handed."""

    def __init__(self, wire: str, replies: Any) -> None:
        super().__init__(replies)
        self.wire = wire
        self.caches: list[int] = []

    async def generate(self, request: Any, emit: Any) -> Any:
        self.caches.append(id(request.cache))
        return await super().generate(request, emit)


class Kinds:
    """A plugin that hands out the providers of a test, by the names of their entries."""

    def __init__(self, providers: Mapping[str, Provider]) -> None:
        self.providers = providers

    @hookimpl
    def openheim_create_provider(self, kind: str, settings: Any, http: Any) -> Provider | None:
        return self.providers[settings.name]


@asynccontextmanager
async def client_over(
    tmp_path: Path, entries: Mapping[str, Mapping[str, Any]] | None = None, tools: Any = (), **replies: Any
) -> AsyncIterator[tuple[Client, dict[str, Wired]]]:
    """A client with an entry for each list of replies; ``first`` falls back to the others, and all retry at once."""
    providers = {name: Wired(f"wire-{name}", script) for name, script in replies.items()}
    given = {"first": {"fallback": LIST[: len(replies) - 1]}, **(entries or {})}
    settings = {
        name: {"kind": "scripted", "default_model": f"m{number}", **given.get(name, {})}
        for number, name in enumerate(providers, 1)
    }
    client = Client(
        config=False, data_dir=tmp_path, settings={"default_provider": "first", "providers": settings}, tools=tools
    )
    client.runtime.host.register(Kinds(providers), kind="providers", name="scripted", distribution="test")
    client.runtime.retry = RetryPolicy(delays=(0.0,))
    async with client:
        yield client, providers


async def run(client: Client, session: Any, *prompts: str) -> tuple[list[Any], list[Any]]:
    """Outcomes and events of the prompts."""
    events: list[Any] = []
    detach = session.stream.attach(events.append)
    with anyio.fail_after(10):
        outcomes = [await session.run(prompt) for prompt in prompts]
    if callable(detach):
        detach()
    return outcomes, events


@pytest.mark.parametrize(
    ("error", "calls"),
    [
        (OverloadedError("busy"), 4),
        (RateLimitedError("slowly", retry_after_secs=3600), 1),
        (ServerError("oops"), 4),
        (ProviderTimeoutError("late"), 4),
        (ProviderConnectionError("gone"), 4),
        (BillingError("broke"), 1),
        (AuthError("who?"), 1),
        (ModelNotFoundError("no m1"), 1),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
async def test_another_answers_after_the_retries(tmp_path: Path, error: ProviderError, calls: int) -> None:
    async with client_over(tmp_path, first=[reply_error(error)] * calls, second=["from m2"]) as (client, providers):
        session = client.new_session(cwd=tmp_path)
        (outcome,), events = await run(client, session, "hi")
        assert len(providers["first"].requests) == calls
    assert (outcome.text, outcome.error) == ("from m2", None)
    assert (outcome.provider, outcome.model) == ("second", "m2")
    (told,) = [event for event in events if event.type == "model_fallback"]
    assert (told.failed_provider, told.failed_model, told.provider, told.model) == ("first", "m1", "second", "m2")
    assert error.message in told.error
    assert [event.type for event in events].count("retry") == calls - 1
    answer = session.messages[-1]
    assert (answer.provider, answer.model, answer.wire) == ("second", "m2", "wire-second")
    assert (session.meta.provider, session.meta.model) == ("first", "m1")


@pytest.mark.parametrize(
    "error",
    [InvalidRequestError("bad"), BlockedError("no"), ContextOverflowError("long")],
    ids=lambda error: error.kind,
)
async def test_what_another_would_refuse_too_is_not_asked_of_it(tmp_path: Path, error: ProviderError) -> None:
    async with client_over(tmp_path, first=[reply_error(error)] * 4, second=["never"]) as (client, providers):
        (outcome,), _events = await run(client, client.new_session(cwd=tmp_path), "hi")
        assert outcome.error is not None and outcome.error.kind == error.kind
        assert not providers["second"].requests


async def test_nobody_takes_over_what_has_been_seen_in_part(tmp_path: Path) -> None:
    async with client_over(tmp_path, first=[reply_error(ServerError("oops"), after="half")], second=["never"]) as (
        client,
        providers,
    ):
        (outcome,), _events = await run(client, client.new_session(cwd=tmp_path), "hi")
        assert outcome.error is not None and outcome.text == "half"
        assert not providers["second"].requests


async def test_the_list_is_asked_once_and_in_order(tmp_path: Path) -> None:
    broke = reply_error(BillingError("broke"))
    # A list of the second entry's own is not followed.
    entries = {"second": {"fallback": ["first/m1"]}}
    async with client_over(tmp_path, entries, first=[broke], second=[broke], third=[broke]) as (client, providers):
        (outcome,), events = await run(client, client.new_session(cwd=tmp_path), "hi")
        assert [len(provider.requests) for provider in providers.values()] == [1, 1, 1]
    assert outcome.error is not None and outcome.error.kind == "billing"
    assert [event.provider for event in events if event.type == "model_fallback"] == ["second", "third"]


async def test_the_turn_stays_with_who_took_over_and_the_next_begins_with_the_first(tmp_path: Path) -> None:
    @tool
    async def act() -> ToolResult:
        """Acts."""
        return ToolResult((TextBlock("done"),))

    thought = ScriptedReply((ThinkingBlock("hm", "sig"), TextBlock("one")))
    async with client_over(
        tmp_path,
        tools=[act],
        first=[thought, reply_error(AuthError("revoked")), "four"],
        second=[reply_tool_calls(("act", {})), "three"],
    ) as (client, providers):
        session = client.new_session(cwd=tmp_path)
        outcomes, events = await run(client, session, "a", "b", "c")
        first, second = providers["first"], providers["second"]
        assert [outcome.text for outcome in outcomes] == ["one", "three", "four"]
        assert [event.type for event in events].count("model_fallback") == 1
        # Each wire has a place of its own for bytes, and keeps it.
        assert len(set(first.caches)) == len(set(second.caches)) == 1 and set(first.caches) != set(second.caches)
        # The thinking is the first wire's, and says so, so that the second leaves it out.
        kept = [message.wire for message in second.requests[0].messages if message.role == "assistant"]
        assert kept == ["wire-first"]
    wires = [message.wire for message in session.messages if message.role == "assistant"]
    assert wires == ["wire-first", "wire-second", "wire-second", "wire-first"]


async def test_the_window_and_the_caps_are_those_of_who_answers(tmp_path: Path) -> None:
    entries = {"second": {"context_window": 1000, "max_tokens": 77, "thinking": "high"}}
    long = "word " * 900
    async with client_over(tmp_path, entries, first=[long, reply_error(AuthError("revoked"))], second=["short"]) as (
        client,
        providers,
    ):
        _outcomes, events = await run(client, client.new_session(cwd=tmp_path), "a", "b")
        (request,) = providers["second"].requests
        assert (request.max_tokens, request.thinking, request.model) == (77, "high", "m2")
        assert len(request.messages) == 1
    kinds = [event.type for event in events]
    assert kinds.index("model_fallback") < kinds.index("context_trimmed")


async def test_what_failed_attempts_cost_is_counted(tmp_path: Path) -> None:
    error = BillingError("broke", usage=Usage(10, 1))
    async with client_over(tmp_path, first=[reply_error(error)], second=[reply_text("ok", usage=Usage(20, 2))]) as (
        client,
        _providers,
    ):
        (outcome,), _events = await run(client, client.new_session(cwd=tmp_path), "hi")
    assert outcome.usage == Usage(30, 3)


@pytest.mark.parametrize(
    ("fallback", "problem"),
    [
        (["second"], "no provider/model"),
        (["/m2"], "no provider/model"),
        (["nobody/m"], "unknown provider 'nobody'"),
        (["first/m1"], "asked after it has failed"),
        (["second/m2", "second/m2"], "asked after it has failed"),
        (["second/m9"], "unknown model 'm9'"),
    ],
)
async def test_lists_that_cannot_work_are_told_when_the_session_starts(
    tmp_path: Path, fallback: list[str], problem: str
) -> None:
    entries = {"first": {"fallback": fallback}, "second": {"models": ["m2"]}}
    async with client_over(tmp_path, entries, first=[], second=[]) as (client, _providers):
        with pytest.raises(ConfigError, match="fallback of provider 'first'") as caught:
            client.new_session(cwd=tmp_path)
        assert problem in str(caught.value)
        client.new_session(cwd=tmp_path, provider="second")


async def test_a_model_of_the_list_that_is_used_does_not_stand_in_for_itself(tmp_path: Path) -> None:
    entries = {"first": {"fallback": ["first/large", "second/m2"]}}
    async with client_over(tmp_path, entries, first=[reply_error(AuthError("revoked"))], second=["ok"]) as (
        client,
        providers,
    ):
        (outcome,), _events = await run(client, client.new_session(cwd=tmp_path, provider="first", model="large"), "hi")
        assert outcome.text == "ok" and len(providers["first"].requests) == 1


async def test_thinking_is_that_of_the_model(tmp_path: Path) -> None:
    entries = {"first": {"thinking": {"default": "low", "large": 2048}, "fallback": []}}
    async with client_over(tmp_path, entries, first=["a", "b", "c"]) as (client, providers):
        session = client.new_session(cwd=tmp_path)
        await session.run("hi")
        session.set_model("first", "large")
        await session.run("hi")
        assert [request.thinking for request in providers["first"].requests] == ["low", 2048]


async def test_another_writes_the_summary_that_a_turn_needs_and_goes_on_with_the_turn(tmp_path: Path) -> None:
    entries = {"first": {"fallback": ["second/m2"], "context_window": 8000}, "second": {"context_window": 8000}}
    first = ["a" * 12000, "b" * 12000, reply_error(BillingError("broke", usage=Usage(1))), "back"]
    second = [reply_text("In short.", usage=Usage(10, 2)), reply_text("from m2", usage=Usage(20, 3))]
    async with client_over(tmp_path, entries, first=first, second=second) as (client, providers):
        context = client.runtime.loaded.config.context
        context.strategy, context.reserve_tokens = "summarise", 0
        session = client.new_session(cwd=tmp_path)
        outcomes, events = await run(client, session, "one", "two", "x" * 6000, "four")
        records = client.runtime.store.load(session.id).records
    assert [outcome.text[-7:] for outcome in outcomes[2:]] == ["from m2", "back"]
    assert outcomes[2].usage == Usage(31, 5)
    assert [(event.provider, event.failed_provider) for event in events if event.type == "model_fallback"] == [
        ("second", "first")
    ]
    asked, sent = providers["second"].requests
    assert asked.tools == () and asked.model == "m2"
    assert "In short." in sent.messages[0].content[-1].text
    (record,) = [record for record in records if record["record"] == "compaction"]
    assert (record["provider"], record["summary"]) == ("second", "In short.")
    # The next turn begins with the first again, and with the summary.
    assert "In short." in providers["first"].requests[-1].messages[0].content[-1].text


async def test_another_writes_the_summary_that_was_asked_for(tmp_path: Path) -> None:
    first = ["1", "2", reply_error(AuthError("who?"))]
    second = [reply_error(ModelNotFoundError("no m2"))]
    async with client_over(tmp_path, first=first, second=second, third=["In short."]) as (client, providers):
        session = client.new_session(cwd=tmp_path)
        await run(client, session, "one", "two")
        events: list[Any] = []
        session.stream.attach(events.append)
        assert await session.compact()
    assert [(event.provider, event.model) for event in events if event.type == "model_fallback"] == [
        ("second", "m2"),
        ("third", "m3"),
    ]
    assert [len(provider.requests) for provider in providers.values()] == [3, 1, 1]


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (reply_error(InvalidRequestError("bad")), InvalidRequestError),
        (reply_text("no", finish="refusal"), BlockedError),
    ],
    ids=["wrong", "refused"],
)
async def test_a_summary_that_another_would_refuse_too_is_not_asked_of_it(
    tmp_path: Path, reply: Any, error: type[ProviderError]
) -> None:
    async with client_over(tmp_path, first=["1", "2", reply], second=[]) as (client, providers):
        session = client.new_session(cwd=tmp_path)
        await run(client, session, "one", "two")
        with pytest.raises(error):
            await session.compact()
    assert not providers["second"].requests
