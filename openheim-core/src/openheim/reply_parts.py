"""The parts of a model's reply while it comes: text, thinking and calls, passed on at once and joined at the end."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from openheim.errors import MalformedToolCallError
from openheim.events import TextDelta, ThinkingDelta, ToolCallDelta
from openheim.jsontext import TextPieces
from openheim.messages import TextBlock, ThinkingBlock, ToolUseBlock
from openheim.providers import MAX_REPLY_CALLS, too_many_calls

if TYPE_CHECKING:
    from openheim.messages import Block
    from openheim.providers import EmitDelta

__all__ = ("CallPart", "ReplyParts")

#: Characters of a call's name, and of its id: several times what any service takes.
_MAX_NAME_LENGTH = 1024


class _Prose:
    """A block of text or thinking that is being written."""

    __slots__ = ("is_thinking", "pieces", "signature", "text")

    def __init__(self, is_thinking: bool) -> None:
        self.is_thinking = is_thinking
        self.pieces: list[str] = []
        self.signature: list[str] = []
        self.text = TextPieces()

    def block(self) -> Block:
        text = "".join(self.pieces) + self.text.held
        return ThinkingBlock(text, "".join(self.signature) or None) if self.is_thinking else TextBlock(text)


class CallPart:
    """A tool call, as far as it has come. ``position`` counts the calls of the reply from 0."""

    __slots__ = ("_pieces", "_text", "id", "name", "position", "signature", "size")

    def __init__(self, position: int = 0) -> None:
        self.position = position
        self.id = ""
        self.name = ""
        self.signature: str | None = None
        #: Characters of arguments so far.
        self.size = 0
        self._pieces: list[str] = []
        self._text = TextPieces()

    def add_name(self, piece: str) -> None:
        """Takes a piece of the name, or the name again with more of it.

        Raises:
            MalformedToolCallError: the name is too long to be one.
        """
        self.name = piece if piece.startswith(self.name) else self.name + piece
        if len(self.name) > _MAX_NAME_LENGTH:
            raise _long_name()

    def add_arguments(self, piece: str) -> str:
        """Takes a piece of the arguments, and returns what it adds to them: no half of a character."""
        if not isinstance(piece, str):
            raise TypeError("arguments are text")
        if piece and ("\ud800" <= piece[-1] <= "\udbff" or self._text.held):  # It is hardly ever so.
            piece = self._text.add(piece)
        if piece:
            self._pieces.append(piece)
            self.size += len(piece)
        return piece

    @property
    def arguments(self) -> str:
        return "".join(self._pieces) + self._text.held

    @property
    def last_piece(self) -> str:
        """The latest piece of the arguments, or ``""``."""
        return self._pieces[-1] if self._pieces else ""


class ReplyParts:
    """The parts of a reply in the order in which they began. Text, thinking and calls are passed on as they come.

    Attributes:
        pieces: how many pieces have come.
        size: their characters.
    """

    __slots__ = ("_calls", "_emit", "_parts", "_prose", "pieces", "size")

    def __init__(self, emit: EmitDelta) -> None:
        self.pieces = 0
        self.size = 0
        self._emit = emit
        self._parts: list[_Prose | CallPart | Block] = []
        self._prose: _Prose | None = None
        self._calls: list[CallPart] = []

    def __bool__(self) -> bool:
        return bool(self._parts)

    @property
    def calls(self) -> list[CallPart]:
        """The calls so far; not to be changed."""
        return self._calls

    def write(self, text: str, *, thinking: bool = False) -> None:
        """Takes a piece of text or thinking, which is not empty.

        Raises:
            TypeError: it is no text. Nothing has changed then.
        """
        if not isinstance(text, str):
            raise TypeError("text is a str")
        prose = self._prose
        if prose is None or prose.is_thinking is not thinking:
            prose = self._begin(thinking)
        self.pieces += 1
        self.size += len(text)
        if "\ud800" <= text[-1] <= "\udbff" or prose.text.held:  # Asked here, for it is hardly ever so.
            text = prose.text.add(text)
            if not text:
                return
        prose.pieces.append(text)
        self._emit(ThinkingDelta(text) if thinking else TextDelta(text))

    def sign(self, signature: str) -> None:
        """Takes a piece of the signature of the thinking that is being written, which may have no text.

        Raises:
            TypeError: it is no text. Nothing has changed then.
        """
        if not isinstance(signature, str):
            raise TypeError("a signature is a str")
        prose = self._prose
        if prose is None or not prose.is_thinking:
            prose = self._begin(True)
        prose.signature.append(signature)

    def end_prose(self) -> None:
        """Ends the text or thinking that is being written: what comes is another block."""
        prose, self._prose = self._prose, None
        if prose is not None and (rest := prose.text.end()):
            prose.pieces.append(rest)
            self._emit(ThinkingDelta(rest) if prose.is_thinking else TextDelta(rest))

    def put(self, block: Block) -> None:
        """Takes a block that comes in one piece and is not shown, such as redacted thinking."""
        self.end_prose()
        self._parts.append(block)

    def begin_call(self, call: CallPart) -> None:
        """Takes a new call, whose first piece :meth:`call_piece` then tells.

        An id that is too long to be one is dropped, so that the call gets another.

        Raises:
            ServerError: there are too many.
            MalformedToolCallError: its name is too long to be one.
        """
        if len(self._calls) >= MAX_REPLY_CALLS:
            raise too_many_calls()
        if isinstance(call.name, str) and len(call.name) > _MAX_NAME_LENGTH:
            raise _long_name()
        if isinstance(call.id, str) and len(call.id) > _MAX_NAME_LENGTH:
            call.id = ""
        self.end_prose()
        call.position = len(self._calls)
        self._calls.append(call)
        self._parts.append(call)

    def call_piece(self, call: CallPart, arguments: str) -> None:
        """Tells a piece of a call that was added to it: its beginning, or arguments."""
        self.pieces += 1
        self.size += len(arguments)
        self._emit(ToolCallDelta(call.position, call.name, arguments))

    def content(self, *, cut: bool) -> tuple[Block, ...]:
        """The blocks. A call without an id, or with one used before in the reply, gets one; no arguments are ``{}``.

        Args:
            cut: whether the reply ended at the output cap. Its last call may then have no arguments *yet*, so it is
                not given any: blank ones tell whoever runs calls that this one is not complete.

        Raises:
            MalformedToolCallError: a call names no tool.
        """
        self.end_prose()
        last = self._calls[-1] if self._calls else None
        seen: set[str] = set()
        blocks: list[Block] = []
        for part in self._parts:
            if isinstance(part, CallPart):
                blocks.append(_tool_use(part, seen, unfinished=cut and part is last))
            else:
                blocks.append(part.block() if isinstance(part, _Prose) else part)
        return tuple(blocks)

    def partial(self) -> tuple[Block, ...]:
        """Text and thinking that have arrived. Calls are left out: they may be cut, and none of them was run."""
        return tuple(part.block() for part in self._parts if isinstance(part, _Prose))

    def _begin(self, thinking: bool) -> _Prose:
        self.end_prose()
        prose = self._prose = _Prose(thinking)
        self._parts.append(prose)
        return prose


def _long_name() -> MalformedToolCallError:
    return MalformedToolCallError(f"the model asked for a tool with a name of more than {_MAX_NAME_LENGTH} characters")


def _tool_use(call: CallPart, seen: set[str], *, unfinished: bool) -> ToolUseBlock:
    if not call.name or not isinstance(call.name, str):
        raise MalformedToolCallError("the model asked for a tool without naming it")
    call_id = call.id.strip() if isinstance(call.id, str) else ""
    if not call_id or call_id in seen:
        call_id = f"call_{os.urandom(12).hex()}"
    seen.add(call_id)
    arguments = call.arguments
    if not arguments.strip():
        arguments = "" if unfinished else "{}"
    signature = call.signature if isinstance(call.signature, str) else None
    return ToolUseBlock(call_id, call.name, arguments, signature)
