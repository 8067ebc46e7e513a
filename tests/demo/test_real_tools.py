"""The demo provider with the real file tools: answers name what is really there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from openheim import TextBlock, Tool, ToolsContext
from openheim.agent.arguments import checked_arguments
from openheim.plugins.catalogue import scan
from openheim.plugins.host import PluginHost
from openheim.plugins.policy import PluginPolicy
from openheim.testing import FakeTurn
from tests.demo.conversation import Answering, Conversation

pytestmark = pytest.mark.anyio

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "tea-timer"
    (folder / "docs").mkdir(parents=True)
    (folder / "README.md").write_text("# Tea timer\n\nRings when the tea is ready.\n", encoding="utf-8")
    (folder / "pyproject.toml").write_text('[project]\nname = "tea-timer"\n', encoding="utf-8")
    (folder / "docs" / "index.md").write_text("How to make tea (green).\n", encoding="utf-8")
    return folder


def fs_tools(folder: Path) -> dict[str, Tool]:
    host = PluginHost(PluginPolicy(strict=True), report=pytest.fail, catalogue=scan())
    offered = host.tools(ToolsContext(folder, folder.parent), only=("fs",))
    return {tool.name: tool.tool for tool in offered}


def answering(folder: Path) -> Answering:
    tools, turn = fs_tools(folder), FakeTurn(folder)

    async def answer(name: str, arguments: dict[str, Any]) -> str:
        result = await tools[name].run(checked_arguments(arguments, tools[name].parameters), turn)
        if isinstance(result, str):
            return result
        return "".join(block.text for block in result.content if isinstance(block, TextBlock))

    return answer


async def test_what_is_in_this_directory(folder: Path) -> None:
    spoken = await Conversation(answering(folder)).say("What is in this directory?")
    assert spoken.answer == (
        "This directory holds 1 folder and 2 files.\n\n"
        "Folders: docs\nFiles: README.md, pyproject.toml\n\n"
        "README.md: Tea timer. Rings when the tea is ready.\npyproject.toml: tea-timer"
    )


async def test_the_first_answer_of_the_quick_start() -> None:
    """Of this checkout, in lines short enough to be seen at a glance."""
    spoken = await Conversation(answering(CHECKOUT)).say("What is in this directory?")
    assert "README.md" in spoken.answer
    assert "pyproject.toml: openheim." in spoken.answer
    assert len(spoken.answer.splitlines()) <= 12


async def test_empty_directory(tmp_path: Path) -> None:
    assert (await Conversation(answering(tmp_path)).say("List files")).answer == "This directory is empty."


async def test_read_search_and_summarise(folder: Path) -> None:
    conversation = Conversation(answering(folder))
    assert "How to make tea (green)." in (await conversation.say("Read docs/index.md")).answer
    assert (await conversation.say("Search for tea (green)")).answer == (
        '1 line in 1 file here contains "tea (green)":\n\n- docs/index.md:1: How to make tea (green).'
    )
    assert (await conversation.say("Search for coffee")).answer == 'Nothing here contains "coffee".'
    assert "Tea timer. Rings when" in (await conversation.say("Summarise README.md")).answer


async def test_write_edit_and_read_again(folder: Path) -> None:
    spoken = await Conversation(answering(folder)).say(
        'Write "tea, tea" to notes.txt, then replace all "tea" with "coffee" in notes.txt, then read notes.txt'
    )
    assert (folder / "notes.txt").read_text("utf-8") == "coffee, coffee"
    assert "Done: notes.txt holds 8 bytes now." in spoken.answer
    assert "coffee, coffee" in spoken.answer


@pytest.mark.parametrize(
    ("prompt", "tool"),
    [
        ("Read nothing.txt", "read_file"),
        ("Read ../outside.txt", "read_file"),
        ("List nowhere", "list_dir"),
        ('Replace "milk" with "sugar" in README.md', "edit_file"),
    ],
)
async def test_what_fails_is_said(prompt: str, tool: str, folder: Path) -> None:
    spoken = await Conversation(answering(folder)).say(prompt)
    assert spoken.answer.startswith(f"{tool} did not succeed: ")
    assert len(spoken.answer) > len(f"{tool} did not succeed: ")
