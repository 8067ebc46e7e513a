"""The contract of toolsets, as a suite to inherit. Importing this takes pytest."""

from __future__ import annotations

import inspect
import json
import re
from typing import TYPE_CHECKING, get_args

from openheim.testing.arguments import odd_arguments, wrong_arguments
from openheim.testing.toolset_conduct import ConductChecks
from openheim.testing.toolset_suite import is_read_only, is_refused, refusal, tree
from openheim.tools import WRITING_KINDS, Replay, ToolKind, tool_target

if TYPE_CHECKING:
    from openheim.plugins.host import PluginHost
    from openheim.testing.turn import FakeTurn
    from openheim.tools import Tool, ToolsContext

__all__ = ("ToolsetContract",)


class ToolsetContract(ConductChecks):
    """Tests for a plugin of group ``openheim.tools``::

        class TestShout(ToolsetContract):
            plugin = "acme_openheim_shout.plugin"
            sample_calls = {"shout": {"text": "hello"}}

    Attributes:
        settings: the ``[tools.NAME]`` table to test with.
        sample_calls: tool names to arguments with which a call succeeds, in the folder that :meth:`prepare` made. A
            tool named here is also called with odd arguments; so is a read-only tool that is not named, unless its
            sample is None. Where samples take something to be set up, override the fixture ``samples``.
        path_arguments: names of tools to those of their arguments that are paths, in place of what is found.
        slow_calls: calls that go on until they are cancelled, for tools that have such.
        patience_secs: how long a cancelled call may take to come back, and what a call leaves to go away.
        allow_shell: what the settings say about running commands.

    Arguments that are paths are tried with ones that lead out of the work directory. They are found by their format
    (``path``), by their name (``path``, ``output_file``), and by the tool's ``target`` where its kind says that it
    is a path.
    """

    def test_offers_tools(self, host: PluginHost, context: ToolsContext, tools: dict[str, Tool]) -> None:
        """The host takes them all: it leaves out what is no tool."""
        assert tools, "openheim_tools returned no tools with these settings"
        unknown = set(self._samples) - set(tools)
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

    def test_traits_fit_together(self, tools: dict[str, Tool]) -> None:
        for name, tool in tools.items():
            kind = getattr(tool, "kind", "other")
            assert not (is_read_only(tool) and kind in WRITING_KINDS), (
                f"{name} says that it is read-only, and that its calls {kind} something"
            )
            if not is_read_only(tool) and kind in WRITING_KINDS:
                # A write that may have happened is not to be made once more without a word.
                assert getattr(tool, "replay", "ask") != "safe", (
                    f"{name} changes files and says that a call whose outcome is unknown may be made again"
                )

    def test_tools_are_the_same_each_time(self, host: PluginHost, context: ToolsContext, offered: list[Tool]) -> None:
        """Whatever differs between two sessions costs the provider's cache of the prompt."""
        again = self._ask(host, context)
        assert [_as_the_model_sees(tool) for tool in again] == [_as_the_model_sees(tool) for tool in offered], (
            "asked again, openheim_tools offers other tools, or describes or orders them differently"
        )

    async def test_sample_calls_succeed(self, tools: dict[str, Tool], turn: FakeTurn) -> None:
        for name, arguments in self._samples.items():
            if arguments is None or name not in tools:
                continue
            problem = await refusal(tools[name], dict(arguments), turn)
            assert problem is None, f"the sample call of {name} failed: {problem}"
            target = tool_target(tools[name], dict(arguments), turn)
            assert target is None or target.strip(), f"{name} gives blank text as the target of its sample call"

    async def test_wrong_arguments_are_refused(self, tools: dict[str, Tool], turn: FakeTurn) -> None:
        """Missing and mistyped arguments: the schema rules them out, or the tool answers with a ToolError."""
        for name in self._callable(tools):
            tool = tools[name]
            for arguments in wrong_arguments(tool.parameters, self._samples.get(name) or {}):
                refused = await is_refused(tool, arguments, turn)
                assert refused, f"{name} took wrong arguments: {json.dumps(arguments)[:200]}"

    async def test_odd_arguments_do_no_harm(self, tools: dict[str, Tool], turn: FakeTurn) -> None:
        """Values that the schema allows and nobody expects give a result or a ToolError."""
        for name in self._callable(tools):
            for arguments in odd_arguments(tools[name].parameters, self._samples.get(name) or {}):
                await is_refused(tools[name], arguments, turn)

    async def test_read_only_tools_change_nothing(
        self, tools: dict[str, Tool], context: ToolsContext, turn: FakeTurn
    ) -> None:
        before = tree(context.work_dir)
        for name in self._callable(tools):
            if not getattr(tools[name], "read_only", False):
                continue
            sample = self._samples.get(name) or {}
            for arguments in (dict(sample), *odd_arguments(tools[name].parameters, sample)):
                await is_refused(tools[name], arguments, turn)
                assert tree(context.work_dir) == before, (
                    f"{name} says that it is read-only and changed files when called with {json.dumps(arguments)[:200]}"
                )


def _as_the_model_sees(tool: Tool) -> str:
    return json.dumps([tool.name, tool.description, tool.parameters])
