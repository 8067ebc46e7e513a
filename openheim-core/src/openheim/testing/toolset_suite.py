"""What the parts of the toolset contract share: what an author fills in, and how tools are made and called."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import anyio
import pluggy
import pytest

from openheim.agent.arguments import checked_arguments
from openheim.errors import ToolError
from openheim.messages import ImageBlock, TextBlock
from openheim.plugins import hookspecs
from openheim.testing.arguments import good_arguments
from openheim.testing.contract import Contract
from openheim.testing.tool_paths import PathArgument, path_arguments
from openheim.testing.turn import FakeTurn
from openheim.tools import ToolResult, ToolsContext

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from openheim.plugins.host import PluginHost
    from openheim.tools import Tool

__all__ = (
    "LONGEST_CALL_SECS",
    "Outcome",
    "ToolsetSuite",
    "is_read_only",
    "is_refused",
    "outcome",
    "refusal",
    "tree",
)

LONGEST_CALL_SECS = 30

#: Names of tools and arguments for them; None for a tool that is not to be called.
Samples: TypeAlias = "Mapping[str, Mapping[str, Any] | None]"


class ToolsetSuite(Contract):
    """See :class:`openheim.testing.ToolsetContract`, which documents the attributes."""

    kind = "tools"

    settings: ClassVar[Mapping[str, Any]] = {}
    sample_calls: ClassVar[Samples] = {}
    path_arguments: ClassVar[Mapping[str, Sequence[str]]] = {}
    slow_calls: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    patience_secs: ClassVar[float] = 5.0
    allow_shell: ClassVar[bool] = False

    def prepare(self, work_dir: Path) -> None:
        """Puts into the work directory what the sample calls need."""
        (work_dir / "README.md").write_text("# A folder for tests\n", encoding="utf-8")

    @pytest.fixture
    def samples(self) -> Samples:
        """The ``sample_calls``. Override it where they take something that runs meanwhile, such as a server::

        @pytest.fixture
        def samples(self):
            with some_server() as address:
                yield {"fetch": {"url": address}}
        """
        return self.sample_calls

    @pytest.fixture(autouse=True)
    def _with_samples(self, samples: Samples) -> None:
        self._samples = samples

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

    def _sampled(self, tools: Mapping[str, Tool], *, read_only: bool = False) -> Iterator[tuple[Tool, dict[str, Any]]]:
        """Tools with the arguments of their sample calls; or only those that change nothing."""
        for name, arguments in self._samples.items():
            if arguments is not None and name in tools and (is_read_only(tools[name]) or not read_only):
                yield tools[name], dict(arguments)

    def _plain_calls(self, tools: Mapping[str, Tool]) -> Iterator[tuple[Tool, dict[str, Any]]]:
        """A call of each tool that may be called: its sample, or one made up."""
        for name in self._callable(tools):
            yield tools[name], good_arguments(tools[name].parameters, self._samples.get(name) or {})

    def _paths_of(self, tool: Tool, arguments: dict[str, Any], turn: FakeTurn) -> list[PathArgument]:
        return path_arguments(tool, arguments, turn, self.path_arguments.get(tool.name))

    def _callable(self, tools: Mapping[str, Tool]) -> list[str]:
        """Tools that may be called with arguments nobody has thought about."""
        return [
            name
            for name, tool in tools.items()
            if self._samples.get(name) is not None or (is_read_only(tool) and name not in self._samples)
        ]


def is_read_only(tool: Tool) -> bool:
    return getattr(tool, "read_only", False) is True


class Outcome(NamedTuple):
    """What the model reads, and the ToolError if it is one."""

    text: str
    refusal: ToolError | None


def _check_result(name: str, result: object) -> None:
    if isinstance(result, str):
        return
    assert isinstance(result, ToolResult), f"{name} returned {type(result).__name__}, not text or a ToolResult"
    for block in result.content:
        assert isinstance(block, TextBlock | ImageBlock), f"{name} returned a {type(block).__name__} in its content"
    json.dumps(result.display, default=lambda value: _not_json(name, value))


def _not_json(name: str, value: object) -> Any:
    raise AssertionError(f"{name} returned a {type(value).__name__} in its display, which is no JSON")


async def is_refused(tool: Tool, arguments: dict[str, Any], turn: FakeTurn) -> bool:
    return await refusal(tool, arguments, turn) is not None


async def refusal(tool: Tool, arguments: dict[str, Any], turn: FakeTurn) -> ToolError | None:
    """The ToolError that a call is answered with, or None if there is a result."""
    return (await outcome(tool, arguments, turn)).refusal


async def outcome(tool: Tool, arguments: dict[str, Any], turn: FakeTurn) -> Outcome:
    """Calls a tool as the core does, after its own check of the arguments. What is neither a result nor a ToolError
    fails the test."""
    call = f"{tool.name}({json.dumps(arguments)[:200]})"
    try:
        with anyio.fail_after(LONGEST_CALL_SECS):
            result = await tool.run(checked_arguments(arguments, tool.parameters), turn)
    except ToolError as err:
        assert str(err).strip(), f"{call} raised a ToolError without a message"
        return Outcome(str(err), err)
    except TimeoutError as err:
        raise AssertionError(f"{call} did not end within {LONGEST_CALL_SECS} s") from err
    except Exception as err:
        raise AssertionError(f"{call} raised {type(err).__name__} instead of a ToolError: {err}") from err
    _check_result(tool.name, result)
    if isinstance(result, str):
        return Outcome(result, None)
    return Outcome("".join(block.text for block in result.content if isinstance(block, TextBlock)), None)


def tree(folder: Path) -> list[tuple[str, int, bytes]]:
    """Everything below a folder: path, mode, and content or link target."""
    found = []
    for parent, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted((*folders, *files)):
            path = Path(parent, name)
            status = path.lstat()
            if path.is_symlink():
                content = os.fsencode(os.readlink(path))
            else:
                content = path.read_bytes() if path.is_file() else b""
            found.append((str(path), status.st_mode, content))
    return found
