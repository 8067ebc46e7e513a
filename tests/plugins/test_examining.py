"""``openheim_examine``: what plugins find out about themselves, and that a broken one is alone with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from openheim import Finding, ToolsContext, hookimpl
from openheim.errors import PluginLoadError
from openheim.plugins.catalogue import Catalogue
from openheim.plugins.host import PluginHost
from openheim.plugins.policy import PluginPolicy

CONTEXT = ToolsContext(work_dir=Path("/work"), data_dir=Path("/data"))


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid")

    colour: str = "red"


class _Toolset:
    Settings = _Settings

    @hookimpl
    def openheim_tools(self) -> list[Any]:
        return []

    @hookimpl
    def openheim_examine(self, settings: _Settings, context: ToolsContext) -> list[Finding]:
        return [Finding("colour", "note", f"{settings.colour} in {context.work_dir}")]


class _General:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    @hookimpl
    def openheim_examine(self) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


class _WithoutTheHook:
    @hookimpl
    def openheim_observe(self) -> None:
        """Sees nothing."""


def make_host(lines: list[str], policy: PluginPolicy | None = None) -> PluginHost:
    return PluginHost(policy or PluginPolicy(), report=lines.append, catalogue=Catalogue())


def test_toolsets_have_their_settings_and_general_plugins_none() -> None:
    lines: list[str] = []
    host = make_host(lines)
    host.register(_Toolset(), kind="tools", name="paint")
    host.register(_General([Finding("weather", "ok", "fine")]), kind="plugins", name="weather")
    host.register(_General(None), kind="plugins", name="silent")
    host.register(_WithoutTheHook(), kind="plugins", name="without")
    found = host.findings(CONTEXT, {"paint": {"colour": "blue"}})
    assert found == [Finding("colour", "note", "blue in /work"), Finding("weather", "ok", "fine")]
    assert lines == []


def test_wrong_settings_are_told_with_the_tools_and_not_here() -> None:
    lines: list[str] = []
    host = make_host(lines)
    host.register(_Toolset(), kind="tools", name="paint")
    assert host.findings(CONTEXT, {"paint": {"color": "blue"}}) == []
    assert lines == []


def _failing_halfway() -> Iterator[Finding]:
    yield Finding("first", "ok", "")
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("answer", "left", "told"),
    [
        (RuntimeError("bad hook"), [], "bad hook"),
        (SystemExit(0), [], "SystemExit"),
        (7, [], "int instead of a list of findings"),
        ("text", [], "str instead of a list of findings"),
        (_failing_halfway(), [Finding("first", "ok", "")], "SystemExit"),
        ([Finding("a", "ok", ""), "text"], [Finding("a", "ok", "")], "a str where a Finding belongs"),
        ([Finding("a", "bad", "")], [], "'bad', not one of ok, note, problem"),  # type: ignore[arg-type] # on purpose
        ([Finding("a", "ok", None)], [], "no text"),  # type: ignore[arg-type] # on purpose
    ],
)
def test_a_broken_plugin_is_reported_and_the_others_go_on(answer: Any, left: list[Finding], told: str) -> None:
    lines: list[str] = []
    host = make_host(lines)
    host.register(_General(answer), kind="plugins", name="broken", distribution="oh-broken")
    host.register(_General([Finding("weather", "ok", "fine")]), kind="plugins", name="weather")
    assert host.findings(CONTEXT) == [*left, Finding("weather", "ok", "fine")]
    (line,) = lines
    assert "oh-broken" in line
    assert told in line


def test_a_wrapper_of_it_is_refused() -> None:
    class Wrapping:
        @hookimpl(wrapper=True)
        def openheim_examine(self) -> Any:
            return (yield)

    with pytest.raises(PluginLoadError, match="openheim_examine cannot be wrapped"):
        make_host([]).register(Wrapping(), kind="plugins", name="wrapping")
