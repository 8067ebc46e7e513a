"""How many tools run after streams of ``cases/sse`` that ask for them and end badly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from openheim import Client, tool
from openheim.retry import RetryPolicy
from tests.support.replies import Reply, raw
from tests.wires.services import WIRES

pytestmark = pytest.mark.anyio

FOLDER = Path(__file__).resolve().parent.parent / "cases" / "sse"

#: The cases' names of wires.
NAMES = {"openai": "chat", "openai_compatible": "chat", "anthropic": "anthropic", "gemini": "gemini"}

CASES = [
    pytest.param(path.parent, case, id=case["case"])
    for path in sorted(FOLDER.glob("*/*.expected.json"))
    for case in [json.loads(path.read_text(encoding="utf-8"))]
    if "tools_run" in case["expect"]
]


def test_there_are_cases() -> None:
    assert len(CASES) >= 4


async def tools_run(wire: str, reply: Reply, tmp_path: Path) -> tuple[int, Any]:
    """How often the tool of the cases has run, and how the turn ended."""
    written = []

    @tool(read_only=True)
    async def write_file(path: str, content: str) -> str:
        written.append(path)
        return "written"

    config = tmp_path / "config.toml"
    with WIRES[wire].server() as server:
        server.add(reply, WIRES[wire].text("ok"))
        config.write_text(
            f'[plugins]\ndisable = ["tools.fs"]\n[providers.test]\n{WIRES[wire].entry}\n'
            f'api_base = "{server.base_url}"\ndefault_model = "gemini-3-test"\n'
        )
        async with Client(config=str(config), cwd=tmp_path, tools=[write_file]) as client:
            client.runtime.retry = RetryPolicy(attempts=1)
            with anyio.fail_after(30):
                outcome = await client.new_session().run("hi")
    return len(written), outcome


@pytest.mark.parametrize(("folder", "case"), CASES)
async def test_case(folder: Path, case: dict[str, Any], tmp_path: Path) -> None:
    expect = case["expect"]
    body = (folder / case["body"]).read_bytes()
    assert case["delivery"] == {"split": "whole", "end": "clean"}
    count, outcome = await tools_run(NAMES[case["wire"]], raw(body), tmp_path)
    assert count == expect["tools_run"]
    assert (outcome.error and outcome.error.kind) == expect.get("error_kind")


@pytest.mark.parametrize("wire", WIRES)
async def test_a_call_that_is_whole_is_run(wire: str, tmp_path: Path) -> None:
    reply = WIRES[wire].tool_calls(("write_file", {"path": "a", "content": "long"}))
    count, outcome = await tools_run(wire, reply, tmp_path)
    assert (count, outcome.error, outcome.text) == (1, None, "ok")
