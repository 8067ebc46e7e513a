"""The contract of toolsets, as a suite to inherit. Importing this takes pytest."""

from __future__ import annotations

import inspect
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, get_args

import anyio
import pluggy
import pytest

from openheim.agent.arguments import checked_arguments
from openheim.errors import ToolError
from openheim.messages import ImageBlock, TextBlock
from openheim.plugins import hookspecs
from openheim.testing.arguments import odd_arguments, wrong_arguments
from openheim.testing.contract import Contract
from openheim.testing.turn import FakeTurn
from openheim.tools import Replay, ToolKind, ToolResult, ToolsContext, tool_target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from openheim.plugins.host import PluginHost
    from openheim.tools import Tool

__all__ = ("ToolsetContract",)

_LONGEST_CALL_SECS = 30


class ToolsetContract(Contract):
    """Tests for a plugin of group ``openheim.tools``::

        class TestShout(ToolsetContract):
            plugin = "acme_openheim_shout.plugin"
            sample_calls = {"shout": {"text": "hello"}}

    Attributes:
        settings: the ``[tools.NAME]`` table to test with.
        sample_calls: tool names to arguments with which a call succeeds, in the folder that :meth:`prepare` made. A
            tool named here is also called with odd arguments; so is a read-only tool that is not named, unless its
            sample is None.
        allow_shell: what the settings say about running commands.
    """

    kind = "tools"

    settings: ClassVar[Mapping[str, Any]] = {}
    sample_calls: ClassVar[Mapping[str, Mapping[str, Any] | None]] = {}
    allow_shell: ClassVar[bool] = False

    def prepare(self, work_dir: Path) -> None:
        """Puts into the work directory what the sample calls need."""
        (work_dir / "README.md").write_text("# A folder for tests\n", encoding="utf-8")

    @pytest.fixture
    def context(self, tmp_path: Path) -> ToolsContext:
        work_dir, data_dir = tmp_path / "work", tmp_path / "data"
        work_dir.mkdir()
        data_dir.mkdir()
        self.prepare(work_dir)
        return ToolsContext(work_dir, data_dir, self.allow_shell, settings=self.settings)

    @pytest.fixture
    def offered(self, host: PluginHost, context: ToolsContext) -> list[Tool]:
        """What the hook returns."""
        return self._ask(host, context)

    @pytest.fixture
    def tools(self, offered: list[Tool]) -> dict[str, Tool]:
        return {tool.name: tool for tool in offered}

    @pytest.fixture
    def turn(self, context: ToolsContext) -> FakeTurn:
        return FakeTurn(context.work_dir, settings=self.settings)

    def _name(self) -> str:
        return "contract"

    def _ask(self, host: PluginHost, context: ToolsContext) -> list[Tool]:
        settings = host.validate_settings("tools", self._name(), self.settings, where="settings")
        manager = pluggy.PluginManager("openheim")
        manager.add_hookspecs(hookspecs)
        manager.register(host.load("tools", self._name()).plugin)
        returned = manager.hook.openheim_tools(settings=settings, context=context)
        return [tool for tools in returned for tool in tools]

    def test_offers_tools(self, host: PluginHost, context: ToolsContext, tools: dict[str, Tool]) -> None:
        """The host takes them all: it leaves out what is no tool."""
        assert tools, "openheim_tools returned no tools with these settings"
        unknown = set(self.sample_calls) - set(tools)
        assert not unknown, f"sample_calls names tools that do not exist: {', '.join(sorted(unknown))}"
        taken = host.tools(context, {self._name(): self.settings} if self.settings else {})
        assert {tool.name for tool in taken} == set(tools)

    def test_names_are_unique_and_fit_every_provider(self, offered: list[Tool]) -> None:
        names = [tool.name for tool in offered]
        assert len(set(names)) == len(names), f"two tools have one name: {', '.join(names)}"
        for name in names:
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name), f"{name!r} is no name that providers accept"

    def test_descriptions_are_there(self, tools: dict[str, Tool]) -> None:
        for name, tool in tools.items():
            assert tool.description.strip(), f"{name} has no description; the model chooses by it"

    def test_parameters_are_described_json_schema(self, tools: dict[str, Tool]) -> None:
        for name, tool in tools.items():
            schema = json.loads(json.dumps(tool.parameters, allow_nan=False))
            assert schema.get("type") == "object", f"the parameters of {name} are no JSON Schema of an object"
            properties = schema.get("properties", {})
            for argument, details in properties.items():
                assert isinstance(details, dict) and details.get("description", "").strip(), (
                    f"argument {argument!r} of {name} has no description; use Annotated[…, 'what it is']"
                )
            missing = set(schema.get("required", ())) - set(properties)
            assert not missing, f"{name} requires arguments that it does not describe: {', '.join(sorted(missing))}"

    def test_traits_have_legal_values(self, tools: dict[str, Tool]) -> None:
        for name, tool in tools.items():
            for trait, legal in (
                ("kind", get_args(ToolKind)),
                ("replay", get_args(Replay)),
                ("read_only", (True, False)),
                ("approval_scope", ("tool", "arguments")),
            ):
                value = getattr(tool, trait, legal[0])
                assert value in legal, f"{trait} of {name} is {value!r}, not one of {', '.join(map(str, legal))}"
            assert inspect.iscoroutinefunction(tool.run), f"run of {name} is not async"

    def test_tools_are_the_same_each_time(self, host: PluginHost, context: ToolsContext, offered: list[Tool]) -> None:
        """Whatever differs between two sessions costs the provider's cache of the prompt."""
        again = self._ask(host, context)
        assert [_as_the_model_sees(tool) for tool in again] == [_as_the_model_sees(tool) for tool in offered], (
            "asked again, openheim_tools offers other tools, or describes or orders them differently"
        )

    async def test_sample_calls_succeed(self, tools: dict[str, Tool], turn: FakeTurn) -> None:
        for name, arguments in self.sample_calls.items():
            if arguments is None or name not in tools:
                continue
            refusal = await _refusal(tools[name], dict(arguments), turn)
            assert refusal is None, f"the sample call of {name} failed: {refusal}"
            target = tool_target(tools[name], dict(arguments), turn)
            assert target is None or target.strip(), f"{name} gives blank text as the target of its sample call"

    async def test_wrong_arguments_are_refused(self, tools: dict[str, Tool], turn: FakeTurn) -> None:
        """Missing and mistyped arguments: the schema rules them out, or the tool answers with a ToolError."""
        for name in self._callable(tools):
            tool = tools[name]
            for arguments in wrong_arguments(tool.parameters, self.sample_calls.get(name) or {}):
                refused = await _is_refused(tool, arguments, turn)
                assert refused, f"{name} took wrong arguments: {json.dumps(arguments)[:200]}"

    async def test_odd_arguments_do_no_harm(self, tools: dict[str, Tool], turn: FakeTurn) -> None:
        """Values that the schema allows and nobody expects give a result or a ToolError."""
        for name in self._callable(tools):
            for arguments in odd_arguments(tools[name].parameters, self.sample_calls.get(name) or {}):
                await _is_refused(tools[name], arguments, turn)

    async def test_read_only_tools_change_nothing(
        self, tools: dict[str, Tool], context: ToolsContext, turn: FakeTurn
    ) -> None:
        before = list(_tree(context.work_dir))
        for name in self._callable(tools):
            if not getattr(tools[name], "read_only", False):
                continue
            sample = self.sample_calls.get(name) or {}
            for arguments in (dict(sample), *odd_arguments(tools[name].parameters, sample)):
                await _is_refused(tools[name], arguments, turn)
                assert list(_tree(context.work_dir)) == before, (
                    f"{name} says that it is read-only and changed files when called with {json.dumps(arguments)[:200]}"
                )

    def _callable(self, tools: Mapping[str, Tool]) -> list[str]:
        """Tools that may be called with arguments nobody has thought about."""
        return [
            name
            for name, tool in tools.items()
            if self.sample_calls.get(name) is not None
            or (getattr(tool, "read_only", False) and name not in self.sample_calls)
        ]


def _as_the_model_sees(tool: Tool) -> str:
    return json.dumps([tool.name, tool.description, tool.parameters])


def _check_result(name: str, result: object) -> None:
    if isinstance(result, str):
        return
    assert isinstance(result, ToolResult), f"{name} returned {type(result).__name__}, not text or a ToolResult"
    for block in result.content:
        assert isinstance(block, TextBlock | ImageBlock), f"{name} returned a {type(block).__name__} in its content"
    json.dumps(result.display, default=lambda value: _not_json(name, value))


def _not_json(name: str, value: object) -> Any:
    raise AssertionError(f"{name} returned a {type(value).__name__} in its display, which is no JSON")


async def _is_refused(tool: Tool, arguments: dict[str, Any], turn: FakeTurn) -> bool:
    return await _refusal(tool, arguments, turn) is not None


async def _refusal(tool: Tool, arguments: dict[str, Any], turn: FakeTurn) -> ToolError | None:
    """Calls a tool as the core does, after its own check of the arguments.

    Returns:
        The ToolError that came of it, or None if there was a result. Anything else fails the test.
    """
    call = f"{tool.name}({json.dumps(arguments)[:200]})"
    try:
        with anyio.fail_after(_LONGEST_CALL_SECS):
            result = await tool.run(checked_arguments(arguments, tool.parameters), turn)
    except ToolError as err:
        assert str(err).strip(), f"{call} raised a ToolError without a message"
        return err
    except TimeoutError as err:
        raise AssertionError(f"{call} did not end within {_LONGEST_CALL_SECS} s") from err
    except Exception as err:
        raise AssertionError(f"{call} raised {type(err).__name__} instead of a ToolError: {err}") from err
    _check_result(tool.name, result)
    return None


def _tree(folder: Path) -> Iterator[tuple[str, int, bytes]]:
    """Everything below a folder: path, mode, and content or link target."""
    for parent, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted((*folders, *files)):
            path = Path(parent, name)
            status = path.lstat()
            if path.is_symlink():
                content = os.fsencode(os.readlink(path))
            else:
                content = path.read_bytes() if path.is_file() else b""
            yield str(path), status.st_mode, content
