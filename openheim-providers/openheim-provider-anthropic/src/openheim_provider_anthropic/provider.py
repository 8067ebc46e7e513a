"""The provider: one request a call, its answer read as a stream."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from openheim import (
    ConfigError,
    InvalidRequestError,
    ModelInfo,
    ProviderError,
    read_reply,
)
from openheim.jsontext import wire_bytes
from openheim.service import HttpService
from openheim_provider_anthropic.assemble import MessagesAssembler
from openheim_provider_anthropic.body import Conversation, tools_of
from openheim_provider_anthropic.history import WIRE, container_of
from openheim_provider_anthropic.models import traits_from_list, traits_of
from openheim_provider_anthropic.schemas import output_schema
from openheim_provider_anthropic.thinking import parse_thinking, thinking_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openheim import EmitDelta, HttpClient, HttpResponse, ModelReply, ModelRequest, Provider, ProviderSettings
    from openheim_provider_anthropic.models import ModelTraits
    from openheim_provider_anthropic.settings import Settings

__all__ = ("AnthropicProvider",)

_BASE = "https://api.anthropic.com/v1"
_VERSION = "2023-06-01"


#: Models asked for at a time, and lists of them read at most.
_PAGE = 1000
_MOST_PAGES = 20

_INSTRUCTION = (
    "Reply with one JSON value and nothing else: no code fence, no words around it. It has to match this JSON Schema:\n"
)


class AnthropicProvider:
    """Speaks the Messages wire.

    Raises:
        ConfigError: Anthropic itself is asked without a key, ``thinking`` is no word that is known, or
            ``extra_headers`` would send a credential over plain http.
    """

    wire = WIRE
    default_model = "claude-sonnet-4-6"
    structured_output = True

    def __init__(self, settings: ProviderSettings, http: HttpClient) -> None:
        try:
            parse_thinking(settings.thinking)
        except ValueError as err:
            raise ConfigError(
                f"provider {settings.name!r}: {err}", hint=f"change it in [providers.{settings.name}]"
            ) from err
        self._settings = settings
        self._service = HttpService(
            settings,
            http,
            base=_BASE,
            key_variable="ANTHROPIC_API_KEY",
            key_header="x-api-key",
            headers={"anthropic-version": _VERSION},
        )
        options: Settings | None = self._service.options
        self._mark = _mark(options.cache if options is not None else True)
        self._server_tools = tuple(map(wire_bytes, options.server_tools)) if options is not None else ()
        #: What the service itself said about its models.
        self._traits: dict[str, ModelTraits] = {}

    def takes_images(self, model: str) -> bool:
        """All models of the last years do; see :class:`openheim.providers.Provider`."""
        return re.match(r"claude-(?:instant|[12]\b)", model) is None

    async def generate(self, request: ModelRequest, emit: EmitDelta) -> ModelReply:
        """Makes one call; see :class:`openheim.providers.Provider`."""
        conversation = Conversation.of(request, self._settings.name)
        fields, instruction = self._fields(request, conversation)
        content = conversation.body(
            request, fields, mark=self._mark, server_tools=self._server_tools, instruction=instruction
        )
        names = tools_of(request.tools).names

        def classified(response: HttpResponse, body: bytes) -> ProviderError:
            return self._with_advice(self._service.classified(response, body), fields)

        async with self._service.post("/messages", content) as response:
            return await read_reply(response, MessagesAssembler(emit, self._settings, names), classified)

    async def models(self) -> list[ModelInfo]:
        """The models that the service offers, by name.

        Raises:
            ProviderError: it did not say.
        """
        infos: dict[str, ModelInfo] = {}
        after = ""
        for _ in range(_MOST_PAGES):
            page = await self._models_page(after)
            for entry in page["data"]:
                if isinstance(entry, dict) and isinstance(entry.get("id"), str):
                    infos[entry["id"]] = _model_info(entry)
                    self._traits[entry["id"]] = traits_from_list(entry)
            last = page.get("last_id")
            if page.get("has_more") is not True or not isinstance(last, str) or last == after:
                break
            after = last
        return sorted(infos.values(), key=lambda info: info.id)

    async def _models_page(self, after: str) -> dict[str, Any]:
        from urllib.parse import quote

        path = f"/models?limit={_PAGE}" + (f"&after_id={quote(after, safe='')}" if after else "")
        return await self._service.get(path, _page)

    def _fields(self, request: ModelRequest, conversation: Conversation) -> tuple[dict[str, Any], str]:
        """The fields of the body beside the conversation, and what is said about the form of the reply in words."""
        settings = self._settings
        traits = self._traits.get(request.model) or traits_of(request.model)
        if request.max_output_tokens is not None:
            traits = replace(traits, max_output=request.max_output_tokens)
        try:
            thinking = parse_thinking(settings.thinking if request.thinking is None else request.thinking)
        except ValueError as err:
            raise InvalidRequestError(str(err)) from err
        max_tokens = settings.max_tokens if request.max_tokens is None else request.max_tokens
        fields = thinking_fields(thinking, traits, max_tokens, lacks_thinking=conversation.lacks_thinking)
        fields["stream"] = True
        if container := container_of(request.messages, settings.name):
            fields["container"] = container
        instruction = ""
        if request.response_schema is not None:
            form = output_schema(request.response_schema) if traits.schema else None
            if form is not None:
                config = fields.setdefault("output_config", {})
                config["format"] = {"type": "json_schema", "schema": form}
            else:
                instruction = _INSTRUCTION + _text_of(request.response_schema)
        return _joined(fields, self._service.extra_body), instruction

    def _with_advice(self, err: ProviderError, fields: Mapping[str, Any]) -> ProviderError:
        if isinstance(err, InvalidRequestError) and "thinking" in fields and "thinking" in err.message.lower():
            err.hint = (
                err.hint or f"set thinking in [providers.{self._settings.name}] to what the model takes, or to off"
            )
        return err


def _mark(cache: bool | str) -> bytes:
    """What marks a block up to which the service keeps its work, with a comma before it; nothing if it shall not."""
    if cache is False:
        return b""
    control = {"type": "ephemeral"} if cache is True or cache == "5m" else {"type": "ephemeral", "ttl": cache}
    return b"," + wire_bytes({"cache_control": control})[1:-1]


def _joined(fields: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """The fields with those of the user, whose objects are taken into ours."""
    for name, value in extra.items():
        ours = fields.get(name)
        fields[name] = {**ours, **value} if isinstance(ours, dict) and isinstance(value, dict) else value
    return fields


def _text_of(schema: Mapping[str, Any]) -> str:
    try:
        return wire_bytes(dict(schema)).decode()
    except (ValueError, TypeError, RecursionError) as err:
        raise InvalidRequestError(f"the schema of the reply cannot be sent as JSON: {err}") from err


def _page(payload: Any) -> dict[str, Any] | None:
    return payload if isinstance(payload, dict) and isinstance(payload.get("data"), list) else None


def _model_info(entry: Mapping[str, Any]) -> ModelInfo:
    def size(*names: str) -> int | None:
        return next((entry[name] for name in names if type(entry.get(name)) is int and entry[name] > 0), None)

    return ModelInfo(entry["id"], size("max_input_tokens", "context_window"), size("max_tokens", "max_output_tokens"))


if TYPE_CHECKING:
    _conforms: type[Provider] = AnthropicProvider
