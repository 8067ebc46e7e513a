"""What a tool implements, what it may ask of its turn, and ``tool``, which makes one from a typed function."""

from __future__ import annotations

import inspect
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, overload, runtime_checkable

from openheim.errors import ToolError, described

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from openheim.files import Files
    from openheim.messages import ImageBlock, TextBlock

__all__ = (
    "CLOSE_SECS",
    "PATH_KINDS",
    "WRITING_KINDS",
    "FunctionTool",
    "Replay",
    "Tool",
    "ToolKind",
    "ToolResult",
    "ToolsContext",
    "Turn",
    "text_room",
    "tool",
    "tool_target",
)

#: What a call does, for surfaces and rules; the values of the Agent Client Protocol's tool kinds.
ToolKind: TypeAlias = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]

#: Kinds whose calls change what is at a path, and all kinds whose target is a path.
WRITING_KINDS: frozenset[ToolKind] = frozenset(("edit", "delete", "move"))
PATH_KINDS: frozenset[ToolKind] = WRITING_KINDS | frozenset(("read", "search"))

#: Seconds that a tool's ``close_session`` has.
CLOSE_SECS = 10.0

#: Room in a result for what is said below its text, about what was left out and how to get it.
_NOTE_BYTES = 1024
#: Text that a result has in any case: with less, nothing gets on.
_MIN_TEXT_BYTES = 1024

#: What to do with a call whose outcome a crash left unknown: run it again, never, or ask.
Replay: TypeAlias = Literal["safe", "never", "ask"]


@dataclass(slots=True, frozen=True)
class ToolResult:
    """What a tool returns when plain text is not enough.

    Args:
        content: blocks for the model, text and images.
        display: for surfaces only: ``diff`` (``path``, ``old``, ``new``), ``locations``, ``title``.
    """

    content: tuple[TextBlock | ImageBlock, ...]
    display: Mapping[str, Any] | None = None


class Turn(Protocol):
    """What a running tool may ask of the turn that it belongs to."""

    @property
    def session_id(self) -> str: ...

    @property
    def cwd(self) -> Path:
        """Directory that relative paths start from; inside the boundary."""
        ...

    @property
    def roots(self) -> Sequence[Path]:
        """The boundary: directories that tools may touch."""
        ...

    @property
    def files(self) -> Files:
        """Access to files that cannot leave the boundary."""
        ...

    @property
    def env(self) -> Mapping[str, str]:
        """Environment for child processes, without provider keys and whatever else looks like a secret."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """The ``[tools.NAME]`` table of the tool's own toolset, as it stands in the settings."""
        ...

    @property
    def cancelled(self) -> bool: ...

    @property
    def result_limit_bytes(self) -> int:
        """Longer results are cut (head and tail are kept). See :func:`text_room`."""
        ...

    @property
    def takes_images(self) -> bool:
        """Whether the model can look at images; a result with images for one that cannot may cost the whole session."""
        ...

    def progress(self, text: str) -> None:
        """Tells watchers how the call goes on."""
        ...

    async def ask(self, question: str) -> bool:
        """Asks a person to allow something; False when nobody can be asked."""
        ...


@runtime_checkable
class Tool(Protocol):
    """A tool. Beside the members below it may have these, found by name:

    - ``kind``: a :data:`ToolKind`, default ``other``;
    - ``read_only``: default False. A tool that changes nothing is offered in plan mode and asked about less;
    - ``result_family``: a word that tools with results of the same form share, for surfaces;
    - ``replay``: a :data:`Replay`, default ``ask`` (``safe`` for a read-only tool);
    - ``approval_scope``: ``tool`` (default) or ``arguments``: what "always allow" covers;
    - ``target(arguments, turn) -> str | None``: what the call acts on, in one canonical spelling (a path, a command).
      Permission rules match on it, and calls that are not read-only run one after the other where it is the same.

    A tool that keeps something beyond a call, such as a process in the background, may also have these:

    - ``async close_session(session_id: str) -> None``: called once a session that has called the tool is closed in this
      process, or the runtime ends. It has :data:`CLOSE_SECS` seconds, and an exception is logged. It may be called
      while calls of other sessions run, and for one session again after it came back. A call outside of a session
      has a blank ``turn.session_id``, for which nothing is closed: keep nothing then.
    - ``keeps_session(session_id: str) -> bool``: whether something is going on that the end of the session would end.
      Until it says no, an idle session is not let go to make room.
    """

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """JSON Schema of an object. The core checks arguments against it before :meth:`run`."""
        ...

    async def run(self, arguments: dict[str, Any], turn: Turn) -> str | ToolResult:
        """Does the work.

        Args:
            arguments: an object that fits ``parameters``; optional arguments given as null are left out.

        Raises:
            ToolError: the model gets its message as an error result. Any other exception gives an error result too.
        """
        ...


@dataclass(slots=True, frozen=True)
class ToolsContext:
    """What a toolset may know when it is asked for its tools.

    Args:
        work_dir: the boundary of file access.
        data_dir: where openheim keeps its own files.
        allow_shell: whether the settings allow running commands.
        ca_file: certificate authorities to trust in connections, as ``[http] ca_file`` says; None for the usual ones.
        private_paths: files and folders that are openheim's alone: its data folder with the history of all sessions,
            the user's settings, and files with keys; some may not exist. Programs that a tool runs need none of them.
        settings: the toolset's section as it stands in the settings, checked if there is anything in it; for a hook
            that does without the argument ``settings``.
    """

    work_dir: Path
    data_dir: Path
    allow_shell: bool = False
    ca_file: str | None = None
    private_paths: tuple[Path, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


class FunctionTool:
    """A tool made from an async function; see :func:`tool`."""

    def __init__(
        self,
        function: Callable[..., Awaitable[str | ToolResult]],
        *,
        name: str | None = None,
        description: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        kind: ToolKind = "other",
        read_only: bool = False,
        replay: Replay | None = None,
        approval_scope: Literal["tool", "arguments"] = "tool",
        target: Callable[[dict[str, Any], Turn], str | None] | None = None,
    ) -> None:
        if not inspect.iscoroutinefunction(function):
            raise TypeError(f"@tool needs an async function, and {function.__qualname__} is none")
        self.function = function
        self.name = name or function.__name__
        self.description = description if description is not None else inspect.cleandoc(function.__doc__ or "")
        self.kind = kind
        self.read_only = read_only
        self.replay: Replay = replay or ("safe" if read_only else "ask")
        self.approval_scope = approval_scope
        self._parameters = parameters
        self._target = target
        self._model: Any = None
        self._takes_turn = "turn" in inspect.signature(function).parameters

    def __repr__(self) -> str:
        return f"FunctionTool({self.name!r})"

    async def __call__(self, *args: Any, **kwargs: Any) -> str | ToolResult:
        """Calls the function itself, as if it were not a tool."""
        return await self.function(*args, **kwargs)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The schema given, or the one of the function's signature (made when first needed: it takes pydantic)."""
        if self._parameters is None:
            from openheim._signatures import parameters_schema

            self._parameters = parameters_schema(self._arguments_model())
        return self._parameters

    def _arguments_model(self) -> Any:
        if self._model is None:
            from openheim._signatures import arguments_model

            self._model = arguments_model(self.function)
        return self._model

    def target(self, arguments: dict[str, Any], turn: Turn) -> str | None:
        """See :class:`Tool`. Without a function of its own: the first required argument, if that is text."""
        if self._target is not None:
            return self._target(arguments, turn)
        required = self.parameters.get("required") or ()
        value = arguments.get(required[0]) if required else None
        return value if isinstance(value, str) else None

    async def run(self, arguments: dict[str, Any], turn: Turn) -> str | ToolResult:
        if self._parameters is None or self._model is not None:
            from openheim._signatures import validated_arguments

            arguments = validated_arguments(self._arguments_model(), arguments)
        if self._takes_turn:
            return await self.function(**arguments, turn=turn)
        return await self.function(**arguments)


@overload
def tool(function: Callable[..., Awaitable[str | ToolResult]], /) -> FunctionTool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    kind: ToolKind = "other",
    read_only: bool = False,
    replay: Replay | None = None,
    approval_scope: Literal["tool", "arguments"] = "tool",
    target: Callable[[dict[str, Any], Turn], str | None] | None = None,
) -> Callable[[Callable[..., Awaitable[str | ToolResult]]], FunctionTool]: ...


def tool(function: Any = None, /, **options: Any) -> Any:
    """Makes a :class:`Tool` from an async function.

    The schema comes from the signature (``Annotated[str, "what it is"]`` describes an argument), the description from
    the docstring. A parameter named ``turn`` is given the :class:`Turn` and is no argument for the model. With
    ``parameters`` the schema is taken as given, and the function gets the arguments that fit it as keywords.

    Raises:
        TypeError: the function is not async, or a parameter has no type annotation.
    """
    if function is not None:
        return FunctionTool(function)
    return lambda decorated: FunctionTool(decorated, **options)


def text_room(turn: Turn, most: int | None = None) -> int:
    """How many bytes of text a result may have so that it is not cut, with 1 KiB left for a note below it.

    Args:
        most: the tool's own limit in bytes.
    """
    room = turn.result_limit_bytes - _NOTE_BYTES
    return max(_MIN_TEXT_BYTES, room if most is None else min(most, room))


def tool_target(candidate: Tool, arguments: dict[str, Any], turn: Turn) -> str | None:
    """What a call acts on (see :class:`Tool`), or None if the tool does not say or fails to. It may block briefly."""
    try:
        target = getattr(candidate, "target", None)
        if target is None:
            return None
        value = target(arguments, turn)
    except (Exception, SystemExit) as err:
        # A path outside the boundary, for instance: running the call will say so.
        if not isinstance(err, ToolError):
            log = logging.getLogger(__name__)
            log.warning("tool %s cannot say what it acts on: %s", candidate.name, described(err))
        return None
    return value if isinstance(value, str) else None
