"""Commands that plugins bring: the settings are read once, and the plugins that serve are those that were loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import Command
from tests.plugins.distributions import make_distribution, make_tool_distribution
from tests.support.openai_server import OpenAIServer
from tests.support.openai_wire import tool_calls

TRANSPORT = """
from openheim import hookimpl
from pydantic import BaseModel

class Settings(BaseModel):
    greeting: str = "hello"

class Once:
    def __init__(self, settings):
        self.settings = settings

    @staticmethod
    def command(name: str):
        return name

    async def serve(self, runtime, options):
        session = runtime.new_session(provider="demo")
        await session.run("hi")
        states = {row.candidate.label: row.status for row in runtime.host.rows()}
        print(self.settings.greeting, options, states["transports:once"], states["tools:broken"])

class Plugin:
    Settings = Settings

    @hookimpl
    def openheim_create_transport(self, name, settings):
        return Once(settings)

plugin = Plugin()
"""


def test_the_command_of_a_transport_reads_the_settings_once(openheim: Command, tmp_path: Path) -> None:
    site = tmp_path / "site"
    make_distribution(
        site, "acme-once", "1", {"openheim.transports": ["once = acme_once:plugin"]}, {"acme_once": TRANSPORT}
    )
    make_tool_distribution(site, "acme-broken", "broken", "raise RuntimeError('broken')")
    openheim.configure('colour = "blue"\n[transports.once]\ngreeting = "good day"\n')
    ended = openheim("once", "you", env={"PYTHONPATH": str(site)})
    assert (ended.code, ended.out) == (0, "good day you loaded error\n"), ended.err
    assert ended.err.count("colour") == 1
    assert ended.err.count("RuntimeError: broken") == 1
    assert [line for line in ended.err.splitlines() if not line.startswith("warning: ")] == []


INTERRUPTED = """
import os, signal

class Named:
    def __set_name__(self, owner, name):
        os.kill(os.getpid(), signal.{signal})
        while True:
            pass

class Owner:
    named = Named()
"""


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_while_a_plugin_makes_its_classes(openheim: Command, tmp_path: Path, name: str, code: int) -> None:
    make_tool_distribution(tmp_path / "site", "acme-named", "named", INTERRUPTED.replace("{signal}", name))
    ended = openheim("run", "--provider", "demo", "hi", env={"PYTHONPATH": str(tmp_path / "site")})
    assert (ended.code, ended.out) == (code, ""), ended.err
    assert "Traceback" not in ended.err


TALKATIVE = """
import logging

for level in ("debug", "info", "warning"):
    getattr(logging.getLogger("openheim.acme"), level)("said it")
"""


@pytest.mark.parametrize(
    ("given", "arguments", "shown"),
    [
        ("", (), ["warning"]),
        ("info", (), ["info", "warning"]),
        ("debug", (), ["debug", "info", "warning"]),
        ("debug", ("--log-level", "error"), []),
    ],
)
def test_the_level_of_what_is_logged(
    openheim: Command, tmp_path: Path, given: str, arguments: tuple[str, ...], shown: list[str]
) -> None:
    make_tool_distribution(tmp_path / "site", "acme-talkative", "talkative", TALKATIVE)
    ended = openheim("tools", "list", *arguments, env={"PYTHONPATH": str(tmp_path / "site"), "OPENHEIM_LOG": given})
    assert ended.code == 0
    levels = ("debug", "info", "warning")
    assert [level for level in levels if f"{level.upper()} openheim.acme: said it" in ended.err] == shown


STUCK = """
import time

import anyio
from openheim import hookimpl, tool

@tool
async def stuck() -> str:
    "Reads something slow."
    await anyio.to_thread.run_sync(time.sleep, 600, abandon_on_cancel=True)
    return ""

@hookimpl
def openheim_tools(settings, context):
    return [stuck]
"""


def test_a_thread_that_was_left_behind_does_not_keep_the_process(openheim: Command, tmp_path: Path) -> None:
    site = tmp_path / "site"
    make_distribution(site, "acme-stuck", "1", {"openheim.tools": ["stuck = acme_stuck"]}, {"acme_stuck": STUCK})
    with OpenAIServer([tool_calls(("stuck", {}))]) as server:
        openheim.use(server)
        ended = openheim("run", "--timeout", "1", "hi", env={"PYTHONPATH": str(site)})
    assert ended.code == 3
    assert "stopped by --timeout" in ended.err
    assert "left behind" in ended.err
