"""``openheim run``: calls that came cut or as no JSON are answered and never run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.command import Command
from tests.support.openai_server import OpenAIServer
from tests.support.openai_wire import text, tool_calls
from tests.support.replies import Reply


def strictly(line: str) -> Any:
    def refuse(constant: str) -> Any:
        raise AssertionError(f"{constant} was written")

    return json.loads(line, parse_constant=refuse)


def result_of(openheim: Command, reply: Reply) -> tuple[str, list[Any]]:
    """What the model is told about the last call of its reply, and the lines of the stream."""
    with OpenAIServer([reply, text("sorry")]) as server:
        openheim.use(server)
        ended = openheim("run", "--output", "stream-json", "hi")
    assert ended.code == 0
    told: str = server.prompts[1].json["messages"][-1]["content"]
    return told, [strictly(line) for line in ended.out.splitlines()]


@pytest.mark.parametrize("written", ["", " "])
def test_a_call_that_was_cut_before_its_arguments_is_not_run(openheim: Command, written: str) -> None:
    (openheim.folder / "present.txt").write_text("x")
    told, lines = result_of(openheim, tool_calls(("list_dir", written), finish="length"))
    assert "present.txt" not in told
    assert "the call was not run" in told
    assert "cut at the output limit" in told
    (result,) = [line for line in lines if line["type"] == "tool_result"]
    assert result["is_error"] is True


def test_the_calls_before_it_are_run(openheim: Command) -> None:
    (openheim.folder / "present.txt").write_text("x")
    told, lines = result_of(openheim, tool_calls(("list_dir", ""), ("list_dir", ""), finish="length"))
    assert "the call was not run" in told
    assert [line["is_error"] for line in lines if line["type"] == "tool_result"].count(False) == 1


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_json_does_not_have_are_not_run_and_never_written(openheim: Command, value: str) -> None:
    written = f'{{"path": "notes.txt", "content": "x", "mode": {value}}}'
    told, lines = result_of(openheim, tool_calls(("write_file", written)))
    assert "not a valid JSON object" in told
    assert not (openheim.folder / "notes.txt").exists()
    (call,) = [line for line in lines if line["type"] == "tool_call"]
    assert call["arguments"] == written
    for path in (openheim.home / "history").glob("*.json*"):
        for line in path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]:
            strictly(line)
