"""Commands that plugins bring: the settings are read once, and the plugins that serve are those that were loaded."""

from __future__ import annotations

from pathlib import Path

from tests.cli.command import Command
from tests.plugins.distributions import make_distribution, make_tool_distribution

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
