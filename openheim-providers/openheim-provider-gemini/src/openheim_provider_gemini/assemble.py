"""Puts a reply together from the events of a stream, and passes its pieces on as they come."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from openheim import (
    AuthError,
    BlockedError,
    CallPart,
    EventAssembler,
    ImageBlock,
    InvalidRequestError,
    MalformedToolCallError,
    ServerError,
    UnknownBlock,
    Usage,
    any_count,
    token_count,
)
from openheim.jsontext import is_deep
from openheim.masking import mask_secrets
from openheim_provider_gemini.contents import PART, is_writable
from openheim_provider_gemini.signatures import SignedSpan, opaque_from

if TYPE_CHECKING:
    from openheim import Block, EmitDelta, Finish, ModelReply, ProviderSettings, ToolNames

__all__ = ("KNOWN_REASONS", "GeminiAssembler")

_FINISHES: dict[str, Finish] = {
    "STOP": "end_turn",
    "MAX_TOKENS": "max_tokens",
    "SAFETY": "refusal",
    "RECITATION": "refusal",
    "BLOCKLIST": "refusal",
    "PROHIBITED_CONTENT": "refusal",
    "SPII": "refusal",
    "MODEL_ARMOR": "refusal",
    "IMAGE_SAFETY": "refusal",
    "IMAGE_PROHIBITED_CONTENT": "refusal",
    "IMAGE_RECITATION": "refusal",
    "ESCALATION": "refusal",
    "CONTINUATION": "max_tokens",
    "LANGUAGE": "other",
    "NO_IMAGE": "other",
    "IMAGE_OTHER": "other",
    "OTHER": "other",
    "FINISH_REASON_UNSPECIFIED": "other",
}

#: Ends at which a call went wrong on the model's side; the same request may well go right.
_BAD_CALLS = {
    "MALFORMED_FUNCTION_CALL": "the model wrote a tool call that the service could not read",
    "UNEXPECTED_TOOL_CALL": "the model called a tool that it was not offered",
    "TOO_MANY_TOOL_CALLS": "the model made too many tool calls one after the other",
}

_MISSING_SIGNATURE = "MISSING_THOUGHT_SIGNATURE"
_MALFORMED = "MALFORMED_RESPONSE"
_NO_ACCOUNT = "PUP_LIMITED_DISABLED"

#: The reasons for an end that are known here.
KNOWN_REASONS = frozenset((*_FINISHES, *_BAD_CALLS, _MISSING_SIGNATURE, _MALFORMED, _NO_ACCOUNT))

_COUNTERS = (
    "promptTokenCount",
    "toolUsePromptTokenCount",
    "cachedContentTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
)

#: Characters of the service's own words that are passed on.
_SAID_CHARACTERS = 300


class GeminiAssembler(EventAssembler):
    """Reads one stream of ``streamGenerateContent``.

    The wire has no end marker: a reply is complete when a candidate has given the reason for its end.

    Args:
        names: finds the tools by the names that were sent.
    """

    def __init__(self, emit: EmitDelta, names: ToolNames, settings: ProviderSettings | None = None) -> None:
        super().__init__(emit, settings)
        self._names = names
        #: What the service has counted, as it says it.
        self._counts: dict[str, Any] = {}
        self._reason = ""
        self._message = ""
        self._spans: list[SignedSpan] = []
        #: Blocks that have ended; the text that is being written is one more, of ``_written`` characters.
        self._blocks = 0
        self._writing: bool | None = None
        self._written = 0

    def take(self, payload: dict[str, Any], event: str) -> None:
        usage = payload.get("usageMetadata")
        if isinstance(usage, dict):
            # Counts are of all so far, so the last one of each counts; the first events have not all of them.
            self._counts.update(usage)
        if self.model is None and isinstance(payload.get("modelVersion"), str):
            self.model = payload["modelVersion"]
        candidates = payload.get("candidates")
        if candidates:
            # More than one come only if the settings ask for them, and then mixed.
            first = next((candidate for candidate in candidates if not candidate.get("index")), None)
            if first is not None:
                self._take_candidate(first)
            return
        feedback = payload.get("promptFeedback")
        if isinstance(feedback, dict) and feedback.get("blockReason"):
            raise BlockedError(
                self._with_words("the service blocked the prompt: ", str(feedback["blockReason"]), feedback),
                hint="change the prompt, or set safetySettings in extra_body of the provider's entry",
            )

    def partial(self) -> tuple[Block, ...]:
        self._count()
        return super().partial()

    def take_document(self, payload: Any) -> bool:
        # Without ``alt=sse``, which a proxy may drop, the stream is one list.
        events = payload if isinstance(payload, list) else [payload]
        if not all(isinstance(event, dict) for event in events):
            return False
        if not any("candidates" in event or "promptFeedback" in event for event in events):
            return False
        for event in events:
            self.take(event, "")
        return True

    def reply(self) -> ModelReply:
        """See the base.

        Raises:
            MalformedToolCallError: the service says that a call of the model went wrong.
            InvalidRequestError: it misses a signature in the request.
            AuthError: it serves this account no more.
            ServerError: it says that its own answer went wrong.
        """
        self._count()
        if self._reason in _BAD_CALLS:
            raise MalformedToolCallError(f"{_BAD_CALLS[self._reason]} ({self._reason}){self._message}")
        if self._reason == _MISSING_SIGNATURE:
            raise InvalidRequestError(
                f"the service misses a signature in the history ({self._reason}){self._message}",
                hint="start a new session",
            )
        if self._reason == _NO_ACCOUNT:
            raise AuthError(
                f"the service has limited or disabled the account ({self._reason}){self._message}",
                hint="use another key, or ask Google about the account",
            )
        if self._reason == _MALFORMED:
            raise ServerError(f"the service broke off a malformed answer ({self._reason}){self._message}")
        self.opaque = opaque_from(self._spans)
        return super().reply()

    def _take_candidate(self, candidate: dict[str, Any]) -> None:
        content = candidate.get("content")
        parts = content.get("parts") if isinstance(content, dict) else None
        for part in parts or ():
            self._take_part(part)
        reason = candidate.get("finishReason")
        if reason:
            self._reason = str(reason)
            self._message = self._with_words(": ", "", candidate)
            self.finish = _FINISHES.get(self._reason, "other")

    def _take_part(self, part: dict[str, Any]) -> None:
        signature = part.get("thoughtSignature")
        if not isinstance(signature, str) or not signature:
            signature = None
        text, call, image = part.get("text"), part.get("functionCall"), part.get("inlineData")
        if isinstance(text, str):
            if part.get("thought") is True:
                self._take_thought(text, signature)
            else:
                self._take_text(text, signature)
        elif isinstance(call, dict):
            self._take_call(call, signature)
        elif isinstance(image, dict) and str(image.get("mimeType", "")).startswith("image/"):
            self._begin_block(None)
            if signature is not None:
                self._spans.append(SignedSpan(self._blocks, 0, None, signature))
            self.parts.put(ImageBlock(str(image.get("data", "")), image["mimeType"]))
            self._blocks += 1
        elif part.keys() - {"thoughtSignature", "thought"}:
            # Of the service's own tools: shown by nobody, and wanted back.
            raw = {"type": PART, "part": part}
            if is_deep(raw) or not is_writable(part):
                self.skip("cannot be kept, and so not be sent back")
                return
            self._begin_block(None)
            self.parts.put(UnknownBlock(raw))
            self._blocks += 1
        elif signature is not None:
            self._take_text("", signature)

    def _take_text(self, text: str, signature: str | None) -> None:
        if text:
            if self._writing is not False:
                self._begin_block(False)
            self.parts.write(text)
        elif signature is None:
            return
        if self._writing is not False:
            # An empty part that is signed stands in front of what comes next.
            self._begin_block(None)
            self._written = 0
        start, self._written = self._written, self._written + len(text)
        if signature is not None:
            self._spans.append(SignedSpan(self._blocks, start, self._written, signature))

    def _take_thought(self, text: str, signature: str | None) -> None:
        if text:
            self._begin_block(True)
            self.parts.write(text, thinking=True)
        if signature is not None:
            self._begin_block(True)
            self.parts.sign(signature)
            # What is signed goes back as one part, so the next thought is another.
            self._begin_block(None)

    def _take_call(self, entry: dict[str, Any], signature: str | None) -> None:
        self._begin_block(None)
        call = CallPart()
        call.id = entry["id"] if isinstance(entry.get("id"), str) else ""
        call.name = self._names.original(entry["name"]) if isinstance(entry.get("name"), str) else ""
        call.signature = signature
        self.parts.begin_call(call)
        arguments = entry.get("args")
        written = json.dumps(arguments, ensure_ascii=False) if arguments else "{}"
        self.parts.call_piece(call, call.add_arguments(written))
        self._blocks += 1

    def _begin_block(self, thinking: bool | None) -> None:
        """Counts blocks as the parts of the reply do: pieces of one kind in a row are one block."""
        if self._writing is thinking:
            return
        if self._writing is not None:
            self.parts.end_prose()
            self._blocks += 1
        self._writing, self._written = thinking, 0

    def _count(self) -> None:
        if any_count(map(self._counts.get, _COUNTERS)):
            prompt, tool_use, cached, said, thought = (token_count(self._counts.get(name)) for name in _COUNTERS)
            self.usage = Usage(
                input_tokens=max(0, prompt + tool_use - cached), output_tokens=said + thought, cache_read_tokens=cached
            )

    def _with_words(self, lead: str, reason: str, said: dict[str, Any]) -> str:
        reason = mask_secrets(reason, self._settings)[:_SAID_CHARACTERS]
        words = said.get("blockReasonMessage") or said.get("finishMessage")
        if not isinstance(words, str) or not words.strip():
            return f"{lead}{reason}" if reason else ""
        words = " ".join(mask_secrets(words, self._settings).split())[:_SAID_CHARACTERS]
        return f"{lead}{reason} ({words})" if reason else f"{lead}{words}"
