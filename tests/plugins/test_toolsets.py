"""The tools of all toolsets: one that fails costs its own tools only, and a clash has one winner."""

from __future__ import annotations

from collections import UserDict
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from openheim import ToolsContext, hookimpl, tool
from openheim.errors import ConfigError, OpenheimError, PluginConflictError, PluginLoadError, StorageError
from openheim.plugins.catalogue import Catalogue
from openheim.plugins.host import PluginHost
from openheim.plugins.policy import PluginPolicy
from openheim.plugins.toolsets import OfferedTool, settle
from tests.plugins.distributions import make_tool_distribution, tool_plugin
from tests.plugins.hosts import context, host_over

CONTEXT = ToolsContext(work_dir=Path("/work"), data_dir=Path("/data"))


@tool
async def good() -> str:
    """Works."""
    return "done"


class Toolset:
    """A toolset whose hook returns what was given, or raises it."""

    def __init__(self, result: Any, settings_model: Any = None) -> None:
        self.result = result
        self.Settings = settings_model
        self.called_with: list[Any] = []

    @hookimpl
    def openheim_tools(self, settings: Any, context: ToolsContext) -> Any:
        self.called_with.append((settings, context))
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result


def host_of(*, policy: PluginPolicy | None = None, **toolsets: Toolset) -> tuple[PluginHost, list[str]]:
    lines: list[str] = []
    host = PluginHost(policy or PluginPolicy(), report=lines.append, catalogue=Catalogue())
    for name, toolset in toolsets.items():
        host.register(toolset, kind="tools", name=name, distribution=f"oh-{name}")
    return host, lines


def names(offered: list[OfferedTool]) -> list[str]:
    return [offer.name for offer in offered]


def named(name: str, **members: Any) -> Any:
    async def run(arguments: dict[str, Any], turn: Any) -> str:
        return name

    return SimpleNamespace(**{"name": name, "description": "", "parameters": {"type": "object"}, "run": run, **members})


def test_tools_come_sorted_with_their_origin() -> None:
    host, lines = host_of(b=Toolset((named("x"), named("a"))), a=Toolset([named("m")]))
    assert [(offer.name, offer.toolset, offer.distribution) for offer in host.tools(CONTEXT)] == [
        ("a", "b", "oh-b"),
        ("m", "a", "oh-a"),
        ("x", "b", "oh-b"),
    ]
    assert lines == []


@pytest.mark.parametrize("result", [None, [], iter(())], ids=["none", "empty", "generator"])
def test_a_toolset_may_have_no_tools(result: Any) -> None:
    host, lines = host_of(x=Toolset(result))
    assert host.tools(CONTEXT) == []
    assert lines == []


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def circular_schema() -> dict[str, Any]:
    inner: dict[str, Any] = {"type": "array"}
    inner["items"] = inner
    return schema(a=inner)


def deep_schema() -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(100_000):
        inner = {"items": inner}
    return schema(a=inner)


@pytest.mark.parametrize(
    "parameters",
    [
        schema(a=True, b={"type": "string"}),
        MappingProxyType(schema(a={"type": "array", "items": {"enum": ("x", "y")}}) | {"required": ("a",)}),
        {"type": "object"},
    ],
)
def test_schemas_that_can_be_sent_are_taken(parameters: Any) -> None:
    host, lines = host_of(x=Toolset([named("t", parameters=parameters)]))
    assert names(host.tools(CONTEXT)) == ["t"]
    assert lines == []


def failing_generator() -> Any:
    yield good
    raise RuntimeError("half way")


def ending_generator() -> Any:
    yield good
    raise SystemExit(0)


class RaisingSchema:
    name = "raising"
    description = ""

    def __init__(self, fault: BaseException | None = None) -> None:
        self.fault = fault or NameError("Path is not defined")

    @property
    def parameters(self) -> Any:
        raise self.fault

    async def run(self, arguments: dict[str, Any], turn: Any) -> str: ...


class RaisingMapping(UserDict[str, Any]):
    """Ends the program when it is looked through."""

    def __iter__(self) -> Any:
        raise SystemExit(0)


class Mute(Exception):
    """Fails even to say what happened."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class ToolClass:
    name = "a_class"
    description = ""
    parameters: dict[str, Any] = {"type": "object"}  # noqa: RUF012  # as a plugin's author would write it

    async def run(self, arguments: dict[str, Any], turn: Any) -> str: ...


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (RuntimeError("bad hook"), "RuntimeError: bad hook"),
        (SystemExit(1), "SystemExit: 1"),
        ("good", "returned str instead of a list of tools"),
        ({"good": good}, "returned dict instead of a list of tools"),
        (7, "returned int instead of a list of tools"),
        (failing_generator(), "RuntimeError: half way"),
        (ending_generator(), "SystemExit: 0"),
        (Mute(), "Mute"),
        ([7], "int object is no tool"),
        ([lambda: None], "function object is no tool"),
        ([ToolClass], "tool 'a_class' has no method run"),
        ([named("bad name")], "its name is 'bad name'"),
        ([named("x" * 65)], "its name is 'xxx"),
        ([named("")], "its name is ''"),
        ([named("t", description=None)], "tool 't' has no text as its description"),
        ([named("t", parameters=[])], "the parameters of tool 't' are no JSON Schema"),
        ([named("t", parameters={"type": "string"})], "the parameters of tool 't' are no JSON Schema"),
        ([named("t", parameters={"properties": {}})], "the parameters of tool 't' are no JSON Schema"),
        ([named("t", parameters=schema(a={"enum": {1, 2}}))], "the parameters of tool 't' cannot be sent as JSON: Ty"),
        ([named("t", parameters=schema(a={"maximum": float("inf")}))], "tool 't' cannot be sent as JSON: ValueError"),
        ([named("t", parameters=schema(a={"default": float("nan")}))], "tool 't' cannot be sent as JSON: ValueError"),
        ([named("t", parameters=schema(a={"default": Path("a")}))], "tool 't' cannot be sent as JSON: TypeError"),
        ([named("t", parameters=circular_schema())], "tool 't' cannot be sent as JSON: ValueError: Circular"),
        ([named("t", parameters=deep_schema())], "tool 't' cannot be sent as JSON: RecursionError"),
        ([named("t", parameters={"type": "object", "properties": ["a"]})], "tool 't' name their properties by"),
        ([named("t", parameters={"type": "object", "properties": {1: {}}})], "tool 't' name their properties by"),
        ([named("t", parameters=schema(a="string"))], "tool 't' describe 'a' by str, which is no JSON Schema"),
        ([named("t", parameters=schema(a=None))], "tool 't' describe 'a' by NoneType"),
        ([named("t", parameters={"type": "object", "required": "a"})], "have something else than a list of names"),
        ([named("t", parameters={"type": "object", "required": [1]})], "have something else than a list of names"),
        ([RaisingSchema()], "tool 'raising' is no tool: NameError: Path is not defined"),
        ([RaisingSchema(SystemExit(0))], "tool 'raising' is no tool: SystemExit: 0"),
        ([RaisingSchema(Mute())], "tool 'raising' is no tool: Mute"),
        ([named("t", parameters=RaisingMapping(type="object"))], "tool 't' cannot be sent as JSON: SystemExit: 0"),
        ([named("t", run="no")], "tool 't' has no method run"),
        ([named("t", read_only="no")], "tool 't': read_only is 'no'"),
        ([named("t", read_only=1)], "tool 't': read_only is 1"),
        ([named("t", replay="sometimes")], "tool 't': replay is 'sometimes'"),
        ([named("t", kind="unheard")], "tool 't': kind is 'unheard'"),
        ([named("t", approval_scope=None)], "tool 't': approval_scope is None"),
        ([named("t"), named("t")], "it offers two tools named 't'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_fails_is_reported_once_and_left_out(result: Any, reason: str) -> None:
    host, lines = host_of(bad=Toolset(result), ok=Toolset([good]))
    offered = host.tools(CONTEXT)
    assert "good" in names(offered)
    assert set(names(offered)) <= {"good", "t"}
    (line,) = lines
    assert line.startswith("Plugin tools:bad (oh-bad) could not run openheim_tools: ")
    assert reason in line
    assert {row.candidate.name: row.status for row in host.rows()} == {"bad": "error", "ok": "loaded"}


def test_what_fails_again_is_not_reported_again() -> None:
    host, lines = host_of(bad=Toolset(RuntimeError("bad hook")))
    host.tools(CONTEXT)
    host.tools(CONTEXT)
    assert len(lines) == 1


def test_one_bad_tool_does_not_cost_the_others() -> None:
    host, lines = host_of(x=Toolset([7, good, named("bad name"), named("other")]))
    assert names(host.tools(CONTEXT)) == ["good", "other"]
    assert len(lines) == 2


class Settings(BaseModel):
    limit: int = 5


def test_settings_and_context_reach_the_hook() -> None:
    toolset, plain = Toolset([good], Settings), Toolset([])
    host, lines = host_of(x=toolset, y=plain)
    host.tools(CONTEXT, {"x": {"limit": 7}})
    assert toolset.called_with == [(Settings(limit=7), replace(CONTEXT, settings={"limit": 7}))]
    assert plain.called_with == [(None, CONTEXT)]
    assert lines == []


def test_a_hook_that_asks_for_no_settings_needs_a_model_only_for_a_section() -> None:
    looked_at = []

    class Lazy:
        def __getattr__(self, name: str) -> Any:
            if name != "Settings":
                raise AttributeError(name)
            looked_at.append(name)
            return Settings

        @hookimpl
        def openheim_tools(self) -> Any:
            return [good]

    host, lines = host_of(x=Lazy())  # type: ignore[arg-type]  # all that host_of wants is a plugin
    assert names(host.tools(CONTEXT)) == ["good"]
    assert not looked_at
    assert names(host.tools(CONTEXT, {"x": {"limit": 7}})) == ["good"]
    with pytest.raises(ConfigError, match="unknown key"):
        host.tools(CONTEXT, {"x": {"limits": 7}})
    assert lines == []


def test_wrong_settings_are_an_error() -> None:
    host, lines = host_of(x=Toolset([named("x")], Settings), ok=Toolset([good]))
    with pytest.raises(ConfigError, match=r"\[tools\.x\] limits: unknown key \(did you mean limit\?\)"):
        host.tools(CONTEXT, {"x": {"limits": 7}})
    assert lines == []


@pytest.mark.parametrize("fault", [SystemExit(0), RuntimeError("sk-test-secret")], ids=repr)
def test_settings_that_fail_to_be_checked_leave_the_toolset_out(fault: BaseException) -> None:
    class Failing(BaseModel):
        key: str = ""

        @field_validator("key")
        @classmethod
        def check(cls, value: str) -> str:
            raise fault

    host, lines = host_of(x=Toolset([named("x")], Failing), ok=Toolset([good]))
    assert names(host.tools(CONTEXT, {"x": {"key": "sk-test-secret"}})) == ["good"]
    (line,) = lines
    assert line == (
        f"Plugin tools:x (oh-x) could not check [tools.x]: its settings model raised {type(fault).__name__}"
        " (tell its author)"
    )


def test_other_errors_of_ours_leave_the_toolset_out() -> None:
    host, lines = host_of(x=Toolset(StorageError("the index is broken")), ok=Toolset([good]))
    assert names(host.tools(CONTEXT)) == ["good"]
    assert lines == ["toolset x (oh-x) is left out: the index is broken"]


def test_settings_of_a_toolset_that_is_not_installed_are_named() -> None:
    host, lines = host_of(mine=Toolset([good]))
    assert names(host.tools(CONTEXT, {"mien": {}, "shell": {}})) == ["good"]
    assert "'mien'" in lines[0]
    assert "did you mean mine?" in lines[0]
    assert "pip install openheim-tools-shell" in lines[1]


def test_only_some_toolsets_may_be_asked() -> None:
    asked, other = Toolset([good]), Toolset([named("other")])
    host, lines = host_of(asked=asked, other=other)
    assert names(host.tools(CONTEXT, only={"asked"})) == ["good"]
    assert other.called_with == []
    assert host.tools(CONTEXT, only=()) == []
    assert lines == []
    host.tools(CONTEXT, only=["gone"])
    assert "'gone'" in lines[0]


@pytest.mark.parametrize(
    ("toolsets", "tables", "error"),
    [
        ({"x": Toolset(RuntimeError("bad hook"))}, {}, PluginLoadError),
        ({"x": Toolset([7])}, {}, PluginLoadError),
        ({"x": Toolset(StorageError("broken"))}, {}, StorageError),
        ({"x": Toolset([good]), "y": Toolset([good])}, {}, PluginConflictError),
    ],
)
def test_a_strict_policy_raises(
    toolsets: dict[str, Toolset], tables: dict[str, dict[str, Any]], error: type[OpenheimError]
) -> None:
    host, lines = host_of(policy=PluginPolicy(strict=True), **toolsets)
    with pytest.raises(error):
        host.tools(CONTEXT, tables)
    assert lines == []


def offer(name: str, distribution: str, toolset: str = "t") -> OfferedTool:
    return OfferedTool(named(name), name, toolset, distribution)


@pytest.mark.parametrize(
    ("first", "second", "winner"),
    [
        ("oh-one", "oh-two", "oh-one"),
        ("acme", "openheim-tools-fs", "openheim-tools-fs"),
        ("Zeta", "alpha", "alpha"),
        ("openheim-tools-shell", "openheim-memory", "openheim-memory"),
    ],
)
def test_a_clash_has_one_winner_whatever_the_order(first: str, second: str, winner: str) -> None:
    for offers in ([offer("x", first), offer("x", second)], [offer("x", second), offer("x", first)]):
        offered, (line,) = settle(offers)
        assert [o.distribution for o in offered] == [winner]
        assert all(word in line for word in ("'x'", first, second, f"that of {winner} is used"))


def test_a_clash_of_three_and_one_inside_a_distribution() -> None:
    offered, lines = settle([offer("x", "c"), offer("x", "b"), offer("x", "a", "t2"), offer("x", "a", "t1")])
    assert [(o.distribution, o.toolset) for o in offered] == [("a", "t1")]
    assert len(lines) == 3


def test_broken_distributions_do_not_touch_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = "broken_distributions"
    sources = {
        "good": tool_plugin("good_tool"),
        "import": "import no_such_library",
        "hook": tool_plugin().replace("return [a_tool]", "raise RuntimeError('bad hook')"),
        "later": tool_plugin("later_tool"),
        "rival": tool_plugin("rival_tool"),
    }
    for name, source in sources.items():
        requires = ["openheim-core>=9"] if name == "later" else []
        make_tool_distribution(tmp_path, f"oh-{name}", name, source, module=f"{prefix}_{name}", requires=requires)
    make_tool_distribution(tmp_path, "oh-other", "rival", module=f"{prefix}_other")
    reported = host_over(tmp_path, monkeypatch, PluginPolicy(disable=("tools.off",)))
    assert names(reported.host.tools(context(tmp_path))) == ["good_tool"]
    text = "\n".join(reported.lines)
    assert len(reported.lines) == 4
    for words in (
        ("tools:import (oh-import 1.0)", "no_such_library"),
        ("tools:hook (oh-hook 1.0)", "bad hook"),
        ("tools:later (oh-later 1.0)", "openheim-core>=9"),
        ("oh-rival 1.0", "oh-other 1.0"),
    ):
        assert all(word in text for word in words)
