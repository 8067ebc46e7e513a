"""What a turn cost: by the prices of whoever answered, and null where a part is not known."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from openheim import tool
from openheim.config.models import PriceSection
from openheim.errors import (
    BillingError,
    IncompleteStreamError,
    OverloadedError,
    ProviderError,
    ProviderTimeoutError,
    ServerError,
)
from openheim.messages import TextBlock, Usage
from openheim.pricing import cost_of
from openheim.providers import EmitDelta, ModelReply, ModelRequest
from openheim.testing import ScriptedProvider, reply_error, reply_text, reply_tool_calls
from tests.agent.turns import Conversation

pytestmark = pytest.mark.anyio

FULL = PriceSection(input=1, output=10, cache_read=0.1, cache_write=2)


@pytest.mark.parametrize(
    ("usage", "price", "cost"),
    [
        (Usage(1_000_000, 100_000, 2_000_000, 500_000), FULL, 1 + 1 + 4 + 0.05),
        (Usage(), FULL, 0),
        (Usage(5, 5), None, None),
        (Usage(1_000_000), PriceSection(input=3), 3),
        (Usage(1_000_000, 1), PriceSection(input=3), None),
        (Usage(10, 10), PriceSection(0, 0, 0, 0), 0),
        (Usage(), PriceSection(), 0),
    ],
)
def test_tokens_cost_what_their_kind_costs(usage: Usage, price: Any, cost: float | None) -> None:
    assert cost_of(usage, price) == (pytest.approx(cost) if cost is not None else None)


async def turn(*replies: Any, **settings: Any) -> float | None:
    conversation = Conversation(replies, **settings)
    return (await conversation.prompt("hi")).cost


async def test_every_call_of_a_turn_counts() -> None:
    calls = reply_tool_calls(("nope", {}), usage=Usage(1000, 100))
    assert await turn(calls, reply_text("ok", usage=Usage(2000, 100)), price=FULL) == pytest.approx(0.005)


async def test_failed_attempts_count_as_far_as_they_were_counted() -> None:
    failed = reply_error(OverloadedError("busy", usage=Usage(1000)))
    assert await turn(failed, reply_text("ok", usage=Usage(1000)), price=FULL) == pytest.approx(0.002)
    assert await turn(reply_error(ServerError("oops", usage=Usage(1000), retryable=False)), price=FULL) == 0.001


async def test_what_is_not_known_is_not_nothing() -> None:
    assert await turn(reply_text("ok", usage=Usage(1, 1))) is None
    assert await turn(reply_text("ok"), price=FULL) is None
    calls = reply_tool_calls(("nope", {}))
    assert await turn(calls, reply_text("ok", usage=Usage(1, 1)), price=FULL) is None
    assert await turn(reply_error(BillingError("broke")), price=FULL) is None


@pytest.mark.parametrize(
    ("error", "cost"),
    [
        (OverloadedError("busy"), 0.002),
        (ServerError("oops", status=502), 0.002),
        (ProviderTimeoutError("late"), None),
        (IncompleteStreamError("half"), None),
        (OverloadedError("busy", partial=[TextBlock("so")]), None),
    ],
)
@pytest.mark.parametrize("way", ["again", "fallback", "last"])
async def test_a_failure_costs_nothing_only_if_the_service_refused(
    error: ProviderError, cost: float | None, way: str
) -> None:
    calls = reply_tool_calls(("nope", {}), usage=Usage(1000))
    rest = [reply_text("ok", usage=Usage(1000))]
    more: dict[str, Any] = {}
    if way == "fallback":
        more = {"fallbacks": (Conversation(rest, price=FULL).settings(),)}
        rest = []
    if way != "again":
        error.retryable = False
    if way == "last":
        rest = []
        cost = cost and cost / 2
    assert await turn(calls, reply_error(error), *rest, price=FULL, **more) == (cost and pytest.approx(cost))


async def test_a_call_that_is_cancelled_costs_nobody_knows_what() -> None:
    @tool(read_only=True)
    async def stop() -> str:
        conversation.loop.cancel()
        return "stopping"

    conversation = Conversation([reply_tool_calls(("stop", {}), usage=Usage(1000))], tools=[stop], price=FULL)
    outcome = await conversation.prompt("hi")
    assert (outcome.stop_reason, outcome.cost) == ("cancelled", 0.001)

    class Stopping(ScriptedProvider):
        async def generate(self, request: ModelRequest, emit: EmitDelta) -> ModelReply:
            if len(self.requests) == 1:
                stopped.loop.cancel()
                await anyio.sleep_forever()
            return await super().generate(request, emit)

    stopped = Conversation(provider=Stopping([reply_tool_calls(("nope", {}), usage=Usage(1000))]), price=FULL)
    outcome = await stopped.prompt("hi")
    assert (outcome.stop_reason, outcome.usage, outcome.cost) == ("cancelled", Usage(1000), None)


async def test_a_fallback_has_its_own_price() -> None:
    script = ScriptedProvider([reply_text("ok", usage=Usage(1000))])
    first = Conversation(
        [reply_error(BillingError("broke", usage=Usage(1000)))],
        price=FULL,
        fallbacks=(Conversation(provider=script, price=PriceSection(input=5)).settings(),),
    )
    assert (await first.prompt("hi")).cost == pytest.approx(0.006)
