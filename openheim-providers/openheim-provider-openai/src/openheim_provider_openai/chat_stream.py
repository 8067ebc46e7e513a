"""Puts a reply together from the chunks of a Chat Completions stream, and passes its pieces on as they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim import EventAssembler, ServerError, Usage, any_count, token_count
from openheim_provider_openai.tool_calls import ToolCalls

if TYPE_CHECKING:
    from openheim import EmitDelta, Finish, ModelReply, ProviderSettings
    from openheim_provider_openai.reasoning_details import ReasoningDetails

__all__ = ("ChatAssembler",)

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


class ChatAssembler(EventAssembler):
    """Reads one stream of Chat Completions.

    Args:
        keeps_details: whether ``reasoning_details`` are kept, to be sent back.
    """

    def __init__(
        self, emit: EmitDelta, settings: ProviderSettings | None = None, *, keeps_details: bool = False
    ) -> None:
        super().__init__(emit, settings)
        self._keeps_details = keeps_details
        self._details: ReasoningDetails | None = None
        self._said = ""
        self._refused = False
        self._calls = ToolCalls()

    def take(self, payload: dict[str, Any], event: str) -> None:
        if payload.get("object") == "error":
            raise self.failure(payload)
        choices = payload.get("choices")
        if choices:
            choice = choices[0]
            if choice.get("index"):
                # Asked for several answers, a service sends them side by side; only the first is taken.
                choice = next((other for other in choices if not other.get("index")), {})
            self._take_delta(choice.get("delta") or choice.get("message") or {})
            finish = choice.get("finish_reason")
            if finish:
                self._said = str(finish).lower()
                self.finish = _FINISHES.get(self._said, "other")
        usage = payload.get("usage")
        if usage:
            self._count(usage)
        if self.model is None and isinstance(payload.get("model"), str):
            self.model = payload["model"]

    def take_document(self, payload: Any) -> bool:
        if not (isinstance(payload, dict) and payload.get("choices")):
            return False
        self.take(payload, "")
        return True

    def normal_finish(self) -> Finish:
        return "refusal" if self._refused else super().normal_finish()

    def reply(self) -> ModelReply:
        """See the base.

        Raises:
            ServerError: the service says that it failed, without saying why.
        """
        if self._said == "error":
            raise ServerError("the service broke off its answer because of an error")
        if self._details is not None:
            self.opaque = self._details.opaque()
        return super().reply()

    def _take_delta(self, delta: dict[str, Any]) -> None:
        content = delta.get("content")
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")  # Some servers send both: one thought.
        if reasoning and isinstance(reasoning, str):
            self.parts.write(reasoning, thinking=True)
        if self._keeps_details and (details := delta.get("reasoning_details")):
            self._take_details(details)
        if content:
            if isinstance(content, str):
                self.parts.write(content)
            else:
                self._take_parts(content)
        refusal = delta.get("refusal")
        if refusal and isinstance(refusal, str):
            self._refused = True
            self.parts.write(refusal)
        calls = delta.get("tool_calls")
        if calls:
            for place, entry in enumerate(calls):
                self._take_call(entry, place)

    def _take_details(self, details: list[Any]) -> None:
        if self._details is None:
            from openheim_provider_openai.reasoning_details import ReasoningDetails

            self._details = ReasoningDetails()
        self._details.add(details)

    def _take_parts(self, parts: list[dict[str, Any]]) -> None:
        """Content as a list of typed parts, which Mistral's reasoning models send."""
        for part in parts:
            if part.get("type") == "thinking":
                inner = part.get("thinking")
                pieces = [inner] if isinstance(inner, str) else [piece.get("text") for piece in inner or ()]
                for piece in pieces:
                    if piece:
                        self.parts.write(piece, thinking=True)
            elif isinstance(part.get("text"), str) and part["text"]:
                self.parts.write(part["text"])

    def _take_call(self, entry: dict[str, Any], place: int) -> None:
        call, arguments, is_new = self._calls.add(entry, place)
        if is_new:
            self.parts.begin_call(call)
        if is_new or arguments:
            self.parts.call_piece(call, arguments)

    def _count(self, usage: dict[str, Any]) -> None:
        if not any_count((usage.get("prompt_tokens"), usage.get("completion_tokens"))):
            return
        details = usage.get("prompt_tokens_details")
        cached = details.get("cached_tokens") if isinstance(details, dict) else None
        read = token_count(cached if cached is not None else usage.get("prompt_cache_hit_tokens"))
        written = token_count(details.get("cache_write_tokens")) if isinstance(details, dict) else 0
        self.usage = Usage(
            input_tokens=max(0, token_count(usage.get("prompt_tokens")) - read - written),
            output_tokens=token_count(usage.get("completion_tokens")),
            cache_creation_tokens=written,
            cache_read_tokens=read,
        )
