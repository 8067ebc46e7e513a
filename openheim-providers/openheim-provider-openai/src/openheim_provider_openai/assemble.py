"""Puts a reply together from the chunks of a Chat Completions stream, and passes its pieces on as they come."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

from openheim import (
    EmptyResponseError,
    IncompleteStreamError,
    MalformedToolCallError,
    ModelReply,
    ServerError,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolCallDelta,
    Usage,
    classify_error_payload,
)
from openheim.jsontext import TextPieces
from openheim_provider_openai.tool_calls import ToolCall, ToolCalls, tool_use_blocks

if TYPE_CHECKING:
    from openheim import Block, EmitDelta, Finish, ProviderSettings, SSEEvent

__all__ = ("ChatAssembler",)

_log = logging.getLogger(__name__)

#: A larger count is no count of tokens.
_MAX_COUNT = 2**53

_FINISHES: dict[str, Finish] = {
    "stop": "end_turn",
    "eos": "end_turn",
    "end_turn": "end_turn",
    "stop_sequence": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "model_length": "max_tokens",
    "content_filter": "refusal",
    "refusal": "refusal",
    "safety": "refusal",
}


class _Prose:
    """A block of text or thinking that is being written."""

    __slots__ = ("is_thinking", "pieces", "text")

    def __init__(self, is_thinking: bool) -> None:
        self.is_thinking = is_thinking
        self.pieces: list[str] = []
        self.text = TextPieces()


class ChatAssembler:
    """Reads one stream.

    Attributes:
        done: whether the end marker has come.
        pieces: how many pieces of text, thinking and calls have come.
        usage: what the service has counted so far.
    """

    def __init__(self, emit: EmitDelta, settings: ProviderSettings | None = None) -> None:
        self.done = False
        self.pieces = 0
        self.usage: Usage | None = None
        self._emit = emit
        self._settings = settings
        self._model: str | None = None
        self._finish: str | None = None
        self._refused = False
        self._skipped = False
        self._parts: list[_Prose | ToolCall] = []
        self._prose: _Prose | None = None
        self._calls = ToolCalls()
        self._started = False

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing: the end marker or the reason for the end has come."""
        return self.done or self._finish is not None

    @property
    def is_started(self) -> bool:
        """Whether anything was understood."""
        return self._started or self.done

    def feed(self, event: SSEEvent) -> None:
        """Takes one event.

        Raises:
            ProviderError: the event reports an error.
        """
        data = event.data
        if data == "[DONE]":
            self.done = True
            return
        try:
            payload = json.loads(data)
        except (ValueError, RecursionError):
            self._unreadable(data)
            return
        if event.event == "error":
            raise classify_error_payload(payload, body=data, settings=self._settings)
        self.feed_payload(payload, data)

    def feed_payload(self, payload: Any, text: str) -> None:
        """Takes one decoded chunk; ``text`` is what it was decoded from."""
        try:
            if payload.get("error") or payload.get("object") == "error":
                raise classify_error_payload(payload, body=text, settings=self._settings)
            self._started = True
            choices = payload.get("choices")
            if choices:
                choice = choices[0]
                self._take(choice.get("delta") or choice.get("message") or {})
                finish = choice.get("finish_reason")
                if finish:
                    self._finish = str(finish)
            usage = payload.get("usage")
            if usage:
                self._count(usage)
            if self._model is None and isinstance(payload.get("model"), str):
                self._model = payload["model"]
        except (AttributeError, KeyError, TypeError):
            self._skip("is not of the expected shape")

    def _take(self, delta: dict[str, Any]) -> None:
        content = delta.get("content")
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")  # Some servers send both: one thought.
        if reasoning and isinstance(reasoning, str):
            self._write(reasoning, thinking=True)
        if content:
            if isinstance(content, str):
                self._write(content, thinking=False)
            else:
                self._take_parts(content)
        refusal = delta.get("refusal")
        if refusal and isinstance(refusal, str):
            self._refused = True
            self._write(refusal, thinking=False)
        calls = delta.get("tool_calls")
        if calls:
            for place, entry in enumerate(calls):
                self._take_call(entry, place)

    def _write(self, text: str, *, thinking: bool) -> None:
        prose = self._prose
        if prose is None or prose.is_thinking is not thinking:
            self._end_prose()
            prose = self._prose = _Prose(thinking)
            self._parts.append(prose)
        self.pieces += 1
        if "\ud800" <= text[-1] <= "\udbff" or prose.text.held:  # Asked here, for it is hardly ever so.
            text = prose.text.add(text)
            if not text:
                return
        prose.pieces.append(text)
        self._emit(ThinkingDelta(text) if thinking else TextDelta(text))

    def _end_prose(self) -> None:
        prose, self._prose = self._prose, None
        if prose is not None and (rest := prose.text.end()):
            prose.pieces.append(rest)
            self._emit(ThinkingDelta(rest) if prose.is_thinking else TextDelta(rest))

    def _take_parts(self, parts: list[dict[str, Any]]) -> None:
        """Content as a list of typed parts, which Mistral's reasoning models send."""
        for part in parts:
            if part.get("type") == "thinking":
                inner = part.get("thinking")
                pieces = [inner] if isinstance(inner, str) else [piece.get("text") for piece in inner or ()]
                for piece in pieces:
                    if piece:
                        self._write(piece, thinking=True)
            elif isinstance(part.get("text"), str) and part["text"]:
                self._write(part["text"], thinking=False)

    def _take_call(self, entry: dict[str, Any], place: int) -> None:
        call, arguments, is_new = self._calls.add(entry, place)
        if is_new:
            self._parts.append(call)
            self._end_prose()
        if is_new or arguments:
            self.pieces += 1
            self._emit(ToolCallDelta(call.position, call.name, arguments))

    def _count(self, usage: dict[str, Any]) -> None:
        def count(value: Any) -> int:
            return value if type(value) is int and 0 < value < _MAX_COUNT else 0

        details = usage.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, dict) else None
        read = count(cached if cached is not None else usage.get("prompt_cache_hit_tokens"))
        self.usage = Usage(
            input_tokens=max(0, count(usage.get("prompt_tokens")) - read),
            output_tokens=count(usage.get("completion_tokens")),
            cache_read_tokens=read,
        )

    def _unreadable(self, data: str) -> None:
        stripped = data.strip()
        if stripped == "[DONE]":
            self.done = True
        elif stripped and not stripped.startswith(":"):  # A comment that was put into a data line keeps alive as well.
            self._skip("is not JSON")

    def _skip(self, why: str) -> None:
        # What was sent may hold a key that a proxy repeats, and there may be any number of such parts.
        if not self._skipped:
            self._skipped = True
            _log.warning("skipped a part of the stream, and skips all others like it: it %s", why)

    # --- the result ---

    def reply(self) -> ModelReply:
        """The whole reply, once the stream has ended.

        Raises:
            IncompleteStreamError: it ended before its end.
            EmptyResponseError: there was nothing in it.
            MalformedToolCallError: it asks for a tool without saying which.
            ProviderError: the service says that it failed, without saying why.
        """
        self._end_prose()
        if self._finish is None and not self._parts and (self.done or not self._started):
            raise EmptyResponseError("the service ended its answer without saying anything")
        if not self.is_complete:
            raise IncompleteStreamError("the answer broke off before its end")
        if self._finish == "error":
            raise ServerError("the service broke off its answer because of an error")
        if any(isinstance(part, ToolCall) and not part.name for part in self._parts):
            raise MalformedToolCallError("the model asked for a tool without naming it")
        finish = self._normal_finish()
        return ModelReply(self._content(cut=finish == "max_tokens"), finish, self.usage, self._model)

    def partial(self) -> tuple[Block, ...]:
        """Text and thinking that have arrived. Calls are left out: they may be cut, and none of them was run."""
        return tuple(_prose_block(part) for part in self._parts if isinstance(part, _Prose))

    def _content(self, *, cut: bool) -> tuple[Block, ...]:
        calls = iter(tool_use_blocks([part for part in self._parts if isinstance(part, ToolCall)], cut=cut))
        return tuple(next(calls) if isinstance(part, ToolCall) else _prose_block(part) for part in self._parts)

    def _normal_finish(self) -> Finish:
        has_calls = any(isinstance(part, ToolCall) for part in self._parts)
        finish = _FINISHES.get(self._finish.lower(), "other") if self._finish is not None else "end_turn"
        if self._refused:
            return "refusal"
        if finish in ("end_turn", "tool_use", "other"):
            # Servers say "stop" with calls and "tool_calls" without any; what is there counts.
            return "tool_use" if has_calls else ("end_turn" if finish == "tool_use" else finish)
        return finish


def _prose_block(prose: _Prose) -> Block:
    text = "".join(prose.pieces) + prose.text.held
    return ThinkingBlock(text) if prose.is_thinking else TextBlock(text)
