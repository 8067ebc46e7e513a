"""Calling web_fetch as the agent loop does, with a look-up that is told what to answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from openheim import TextBlock, ToolError
from openheim.testing import FakeTurn
from openheim_tools_web.web_fetch import WebFetch

__all__ = ("LOOPBACK", "LookUp", "call", "is_refused", "page_of")

#: Settings that switch the test of addresses off for servers of tests.
LOOPBACK = {"allow_private": ["127.0.0.0/8"]}


class LookUp:
    """Answers in turn with lists of addresses, the last of them for good; keeps the names it was asked for."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def call(
    url: str,
    *,
    look_up: LookUp | None = None,
    settings: dict[str, Any] | None = None,
    limit: int = 128 * 1024,
    ca_file: str | None = None,
    **arguments: Any,
) -> str:
    """The text that the model gets."""
    tool = WebFetch(ca_file=ca_file, look_up=look_up or LookUp(["93.184.215.14"]))
    turn = FakeTurn(Path("/nowhere"), settings=settings, result_limit_bytes=limit)
    (block,) = (await tool.run({"url": url, **arguments}, turn)).content
    assert isinstance(block, TextBlock)
    return block.text


async def page_of(url: str, **options: Any) -> str:
    """The text of a page that a server on the loopback interface has."""
    settings = LOOPBACK | options.pop("settings", {})
    return await call(url, look_up=LookUp(["127.0.0.1"]), settings=settings, **options)


async def is_refused(url: str, **options: Any) -> bool:
    """Whether the guard refuses the address, or what it leads to."""
    try:
        await call(url, **options)
    except ToolError as err:
        # Whoever is let through fails too, since tests connect to nothing outside.
        return "connect" not in str(err)
    return False
