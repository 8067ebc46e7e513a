"""How much of a tool's result the model is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from openheim import Turn, text_room, tool
from openheim.agent.results import cut_text, old_result_bytes, result_limit_bytes
from openheim.messages import ToolResultBlock
from openheim.testing import FakeTurn, ScriptedProvider, reply_tool_calls
from tests.agent.turns import Conversation

pytestmark = pytest.mark.anyio

KIB = 1024


@pytest.mark.parametrize(
    ("window", "limit", "old"),
    [
        (None, 128 * KIB, 2048),
        (1_000_000, 128 * KIB, 2048),
        (200_000, 128 * KIB, 2048),
        (64 * KIB, 64 * KIB, 2048),
        (16 * KIB, 16 * KIB, KIB),
        (8 * KIB, 8 * KIB, 512),
        (1000, 8 * KIB, 400),
    ],
)
async def test_limits_go_with_the_window(window: int | None, limit: int, old: int) -> None:
    assert (result_limit_bytes(window), old_result_bytes(window)) == (limit, old)


@pytest.mark.parametrize(
    ("limit", "most", "room"),
    [
        (128 * KIB, None, 127 * KIB),
        (128 * KIB, 100 * KIB, 100 * KIB),
        (8 * KIB, 100 * KIB, 7 * KIB),
        (8 * KIB, None, 7 * KIB),
        (1, None, KIB),
        (1, 10, KIB),
    ],
)
def test_room_for_the_text_of_a_result(limit: int, most: int | None, room: int) -> None:
    assert text_room(FakeTurn(Path(), result_limit_bytes=limit), most) == room


async def test_the_loop_keeps_results_within_the_limit_and_tells_tools_of_it() -> None:
    limits: list[int] = []

    @tool
    async def long(turn: Turn) -> str:
        limits.append(turn.result_limit_bytes)
        return "é" * 20_000 + "the end"

    run = Conversation([reply_tool_calls(("long", {})), "ok"], tools=[long], context={"window": 16 * KIB})
    await run.prompt("go")
    (result,) = run.history.messages[2].content
    assert isinstance(result, ToolResultBlock)
    assert limits == [16 * KIB]
    assert 15 * KIB < len(result.content.encode()) <= 16 * KIB
    assert result.content.endswith("éthe end")
    assert "of 40007 bytes left out here" in result.content


@pytest.mark.parametrize("takes", [True, False, None])
async def test_tools_are_told_whether_the_model_takes_images(takes: bool | None) -> None:
    told: list[bool] = []

    class Looking(ScriptedProvider):
        def takes_images(self, model: str) -> bool:
            assert model
            return bool(takes)

    @tool
    async def look(turn: Turn) -> str:
        told.append(turn.takes_images)
        return "seen"

    kind = ScriptedProvider if takes is None else Looking
    run = Conversation(provider=kind([reply_tool_calls(("look", {})), "ok"]), tools=[look])
    await run.prompt("go")
    assert told == [bool(takes)]


@pytest.mark.parametrize("limit", [0, 100, 199, 200, 201, 1000])
@pytest.mark.parametrize("text", ["x" * 5000, "é" * 3000, "\U0001f600" * 2000, "\ud800" * 2000])
async def test_a_cut_keeps_whole_characters(text: str, limit: int) -> None:
    cut = cut_text(text, limit)
    assert len(cut.encode("utf-8", "surrogatepass")) <= max(limit, 200)
    assert f"of {len(text.encode('utf-8', 'surrogatepass'))} bytes left out here" in cut
