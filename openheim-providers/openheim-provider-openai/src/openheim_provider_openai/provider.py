"""The provider: one request a call, its answer read as a stream."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from openheim import ModelInfo, ToolCallDelta, ToolUseBlock, read_error, read_reply
from openheim_provider_openai.chat import chat_body
from openheim_provider_openai.chat_stream import ChatAssembler
from openheim_provider_openai.dialect import RESPONSES
from openheim_provider_openai.schemas import is_strict, reply_schema
from openheim_provider_openai.service import Service
from openheim_provider_openai.tools import ToolEncoder, chat_tool, dumped, responses_tool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openheim import (
        Delta,
        EmitDelta,
        EventAssembler,
        HttpClient,
        HttpResponse,
        ModelReply,
        ModelRequest,
        Provider,
        ProviderError,
        ProviderSettings,
        ToolNames,
    )
    from openheim_provider_openai.response_items import ItemEncoder

__all__ = ("OpenAIProvider",)

_log = logging.getLogger(__name__)

_RESPONSES_PATH = "/responses"

#: The model of OpenAI itself that is asked when nobody names one.
_OPENAI_MODEL = "gpt-4o"

#: OpenAI takes no longer keys.
_LONGEST_CACHE_KEY = 64

#: The least that the Responses wire takes.
_LEAST_OUTPUT_TOKENS = 16

#: What is asked for without the user's word and is not worth failing for: the fields, and what a refusal of each says.
_USAGE = "stream_options"
_SUMMARY = "reasoning.summary"
_REASONING = "reasoning.encrypted_content"
_EFFORT = "reasoning.effort"
_REFUSALS = {
    _USAGE: (b"stream_options",),
    _SUMMARY: (b"reasoning.summary", b"reasoning summaries"),
    _EFFORT: (b"reasoning.effort", b"reasoning_effort"),
    _REASONING: (b"ncrypted content is not supported", b"reasoning.encrypted_content"),
}


class OpenAIProvider:
    """Speaks Chat Completions and Responses, whichever the entry or the model wants.

    Raises:
        ConfigError: the entry lacks something; see :class:`~openheim_provider_openai.service.Service`.
    """

    structured_output = True

    def __init__(self, kind: str, settings: ProviderSettings, http: HttpClient) -> None:
        self._settings = settings
        self._service = Service(kind, settings, http)
        self._dialect = dialect = self._service.dialect
        # Which models a compatible service has is not known.
        self.default_model = settings.default_model or (_OPENAI_MODEL if kind == "openai" else "")
        self.wire = self.wire_for(self.default_model)
        self._extra_body = self._service.extra_body
        self._chat_tools = ToolEncoder(chat_tool, reduces=dialect.reduces_schemas)
        self._responses_tools = ToolEncoder(responses_tool, reduces=dialect.reduces_schemas)
        self._items: dict[bool, ItemEncoder] = {}
        #: What the service has refused, by model where it is a matter of the model.
        self._refused: set[tuple[str, str]] = set()

    def wire_for(self, model: str) -> str:
        """The wire that a model is asked on; see :class:`openheim.providers.Provider`."""
        return self._dialect.wire_for(model)

    def takes_images(self, model: str) -> bool:
        """Whether a model can look at images; see :class:`openheim.providers.Provider`."""
        return self._dialect.takes_images(model)

    async def generate(self, request: ModelRequest, emit: EmitDelta) -> ModelReply:
        """Makes one call; see :class:`openheim.providers.Provider`."""
        # Each second request drops a field that was refused by its name, and none is dropped twice.
        while True:
            path, content, optional, names = self._request(request)
            async with self._service.post(path, content) as response:
                if response.status != 400:
                    assembler = self._assembler(path, emit if names is None else _restoring(emit, names))
                    classified = self._classified if path == _RESPONSES_PATH else self._service.classified
                    reply = await read_reply(response, assembler, classified)
                    return reply if names is None else _restored(reply, names)
                body = await read_error(response)
            if not self._drop(request.model, optional, body):
                raise self._service.classified(response, body)

    async def models(self) -> list[ModelInfo]:
        """The models that the service offers, by name.

        Raises:
            ProviderError: it did not say.
        """
        return sorted(await self._service.get("/models", _model_infos), key=lambda info: info.id)

    # --- requests ---

    def _request(self, request: ModelRequest) -> tuple[str, bytes, list[str], ToolNames | None]:
        """A request's path and body, what of it is optional, and the way back from names of tools."""
        if self.wire_for(request.model) == RESPONSES:
            return self._responses_request(request)
        return self._chat_request(request)

    def _chat_request(self, request: ModelRequest) -> tuple[str, bytes, list[str], ToolNames | None]:
        dialect = self._dialect
        parameters: dict[str, Any] = {"stream": True}
        optional: list[str] = []
        if dialect.stream_options is not False and (_USAGE, "") not in self._refused:
            parameters["stream_options"] = {"include_usage": True}
            optional = [_USAGE] if dialect.stream_options is None else []
        max_tokens = self._max_tokens(request)
        if max_tokens is not None:
            parameters[dialect.max_tokens_field] = max_tokens
        effort, is_asked = self._effort(request)
        if effort is not None:
            parameters["reasoning_effort"] = effort
            optional += [] if is_asked else [_EFFORT]
        system = None
        if request.response_schema is not None:
            schema = reply_schema(request.response_schema)
            if schema is None or dialect.response_format == "json_object":
                system = _with_schema(request.system, request.response_schema)
            if schema is not None:
                parameters["response_format"] = (
                    {"type": "json_object"}
                    if dialect.response_format == "json_object"
                    else {"type": "json_schema", "json_schema": _format(schema)}
                )
        if dialect.prompt_cache_key and request.session_id:
            parameters["prompt_cache_key"] = _cache_key(request.session_id)
        tools = self._chat_tools.encode(request.tools if dialect.tools else ())
        fields = _merged(parameters, self._extra_body)
        content = chat_body(request, dialect, self._settings.name, tools.field, fields, system=system)
        return "/chat/completions", content, optional, tools.names

    def _responses_request(self, request: ModelRequest) -> tuple[str, bytes, list[str], ToolNames | None]:
        from openheim_provider_openai.responses import responses_body

        dialect = self._dialect
        parameters: dict[str, Any] = {"stream": True, "store": False}
        optional: list[str] = []
        reasons = dialect.reasons(request.model) and (_REASONING, request.model) not in self._refused
        effort, is_asked = self._effort(request)
        reasoning: dict[str, Any] = {}
        if effort is not None:
            reasoning["effort"] = effort
            optional += [] if is_asked else [_EFFORT]
        if reasons:
            parameters["include"] = ["reasoning.encrypted_content"]
            optional += [_REASONING] if dialect.reasoning is None else []
            summary = dialect.reasoning_summary or "auto"
            is_shown = summary != "none" and request.thinking not in ("off", "none", "0", 0)
            if is_shown and (_SUMMARY, "") not in self._refused:
                reasoning["summary"] = summary
                optional += [_SUMMARY] if dialect.reasoning_summary is None else []
        if reasoning:
            parameters["reasoning"] = reasoning
        max_tokens = self._max_tokens(request)
        if max_tokens is not None:
            parameters["max_output_tokens"] = max(max_tokens, _LEAST_OUTPUT_TOKENS)
        system = request.system
        if request.response_schema is not None:
            schema = reply_schema(request.response_schema)
            if schema is None:
                system = _with_schema(system, request.response_schema)
            else:
                parameters["text"] = {"format": {"type": "json_schema"} | _format(schema)}
        if request.session_id:
            parameters["prompt_cache_key"] = _cache_key(request.session_id)
        tools = self._responses_tools.encode(request.tools if self._dialect.tools else ())
        items = self._item_encoder(replays=reasons)
        content = responses_body(request, items, tools.field, _merged(parameters, self._extra_body), system=system)
        return _RESPONSES_PATH, content, optional, tools.names

    def _effort(self, request: ModelRequest) -> tuple[str | None, bool]:
        """The effort to ask for, and whether it is the user's own word, which is not dropped."""
        if request.thinking is None:
            return None, False
        from openheim_provider_openai.thinking import reasoning_effort

        effort = reasoning_effort(request.model, request.thinking, reasons=self._dialect.reasons(request.model))
        is_asked = effort == request.thinking
        return (None if not is_asked and (_EFFORT, request.model) in self._refused else effort), is_asked

    def _item_encoder(self, *, replays: bool) -> ItemEncoder:
        encoder = self._items.get(replays)
        if encoder is None:
            from openheim_provider_openai.response_items import ItemEncoder

            encoder = self._items[replays] = ItemEncoder(self._dialect, self._settings.name, replays=replays)
        return encoder

    def _max_tokens(self, request: ModelRequest) -> int | None:
        return request.max_tokens if request.max_tokens is not None else self._settings.max_tokens

    def _assembler(self, path: str, emit: EmitDelta) -> EventAssembler:
        if path == _RESPONSES_PATH:
            from openheim_provider_openai.responses_stream import ResponsesAssembler

            return ResponsesAssembler(emit, self._settings)
        return ChatAssembler(emit, self._settings, keeps_details=self._dialect.reasoning_details)

    def _classified(self, response: HttpResponse, body: bytes) -> ProviderError:
        """The error that an answer on the Responses wire stands for. Not every gateway before OpenAI has that wire."""
        error = self._service.classified(response, body)
        if response.status in (404, 405, 501) and self._dialect.wire is None:
            other = f'if the service has no Responses API, set wire = "chat" in [providers.{self._settings.name}]'
            error.hint = f"{error.hint}; {other}" if error.hint else other
        return error

    def _drop(self, model: str, optional: list[str], body: bytes) -> bool:
        """Whether the body of a refusal names something optional, which is then not asked for again."""
        for field in optional:
            if any(word in body for word in _REFUSALS[field]):
                _log.debug("the service takes no %s; it is asked without from now on", field)
                self._refused.add((field, model if field in (_EFFORT, _REASONING) else ""))
                return True
        return False


def _merged(parameters: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters with those of the entry over them; objects are merged."""
    merged = dict(parameters)
    for key, value in extra.items():
        known = merged.get(key)
        merged[key] = {**known, **value} if isinstance(known, dict) and isinstance(value, dict) else value
    return merged


def _format(schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": "reply", "schema": schema, "strict": is_strict(schema)}


def _with_schema(system: str, schema: Mapping[str, Any]) -> str:
    what = "one JSON object" if schema.get("type") == "object" else "one JSON value, and nothing around it,"
    told = f"Reply with {what} that matches this JSON Schema: {dumped('the schema', schema).decode()}"
    return f"{system}\n\n{told}" if system.strip() else told


def _cache_key(session_id: str) -> str:
    if len(session_id) <= _LONGEST_CACHE_KEY:
        return session_id
    from hashlib import sha256

    return sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()


def _restoring(emit: EmitDelta, names: ToolNames) -> EmitDelta:
    """Passes deltas on with the tools' own names."""

    def restored(delta: Delta) -> None:
        if isinstance(delta, ToolCallDelta) and delta.name:
            delta = ToolCallDelta(delta.index, names.original(delta.name), delta.arguments)
        emit(delta)

    return restored


def _restored(reply: ModelReply, names: ToolNames) -> ModelReply:
    """A reply with the tools' own names."""
    from dataclasses import replace

    content = tuple(
        replace(block, name=names.original(block.name)) if isinstance(block, ToolUseBlock) else block
        for block in reply.content
    )
    return replace(reply, content=content)


def _model_infos(payload: Any) -> list[ModelInfo] | None:
    entries = payload.get("data") if isinstance(payload, dict) else payload
    if not isinstance(entries, list):
        return None
    return [_model_info(entry) for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)]


def _model_info(entry: dict[str, Any]) -> ModelInfo:
    def size(*names: str) -> int | None:
        return next((entry[name] for name in names if type(entry.get(name)) is int and entry[name] > 0), None)

    return ModelInfo(
        entry["id"], size("context_window", "context_length", "max_model_len"), size("max_output_tokens", "max_tokens")
    )


if TYPE_CHECKING:
    _conforms: type[Provider] = OpenAIProvider
