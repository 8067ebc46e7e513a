"""The provider: one request a call, its answer read as a stream."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

from openheim import (
    ConfigError,
    ModelInfo,
    ProviderError,
    classify_error,
)
from openheim.headers import credential_headers
from openheim.receiving import read_reply
from openheim_provider_openai.assemble import ChatAssembler
from openheim_provider_openai.chat import chat_body

if TYPE_CHECKING:
    from openheim import EmitDelta, HttpClient, HttpResponse, ModelReply, ModelRequest, Provider, ProviderSettings
    from openheim_provider_openai.settings import Settings

__all__ = ("OpenAIProvider",)

_log = logging.getLogger(__name__)

OPENAI_BASE = "https://api.openai.com/v1"
KEY_VARIABLE = "OPENAI_API_KEY"

#: Bytes read of an answer that reports an error, and of one that is a document where a stream was asked for.
_ERROR_BYTES = 64 * 1024
_DOCUMENT_BYTES = 16 * 1024 * 1024

#: How long an answer that is complete waits for its usage and its end marker.
_LAST_SECS = 1.0

_EFFORTS = frozenset(("none", "minimal", "low", "medium", "high", "xhigh"))


class OpenAIProvider:
    """Speaks Chat Completions.

    Raises:
        ConfigError: an entry of kind ``openai_compatible`` has no address, OpenAI itself is asked without a key, or
            ``extra_headers`` would send a credential over plain http.
    """

    wire = "openai-chat"
    default_model = "gpt-4o"

    def __init__(self, kind: str, settings: ProviderSettings, http: HttpClient) -> None:
        options: Settings | None = settings.options if settings.has_own_options else None
        base = settings.api_base.rstrip("/") or (OPENAI_BASE if kind == "openai" else "")
        where = f"[providers.{settings.name}]"
        if not base:
            raise ConfigError(
                f"provider {settings.name!r} has no api_base",
                hint=f'set it in {where}, such as "http://localhost:8000/v1"',
            )
        self._key_variable = settings.key_variable or (KEY_VARIABLE if base == OPENAI_BASE else "")
        if base == OPENAI_BASE and not settings.api_key:
            raise ConfigError(
                f"provider {settings.name!r} has no key",
                hint=f"set {self._key_variable}, or env_var or api_key in {where}",
            )
        self._settings = settings
        self._http = http
        self._base = base
        self._headers = {"content-type": "application/json", "accept": "text/event-stream"}
        if settings.api_key:
            self._headers["authorization"] = f"Bearer {settings.api_key}"
        self._max_tokens_field = "max_completion_tokens" if kind == "openai" else "max_tokens"
        self._extra_body: dict[str, Any] = {}
        self._stream_options = True
        self._may_drop_stream_options = True
        if options is not None:
            if base.lower().startswith("http:") and (secret := credential_headers(options.extra_headers)):
                raise ConfigError(
                    f"provider {settings.name!r} would send {', '.join(secret)} over plain http, in clear",
                    hint=f"use an https address, or take them out of extra_headers in {where} for a local server",
                )
            self._headers |= options.extra_headers
            self._extra_body = options.extra_body
            self._max_tokens_field = options.max_tokens_field or self._max_tokens_field
            self._stream_options = options.stream_options is not False
            self._may_drop_stream_options = options.stream_options is None

    async def generate(self, request: ModelRequest, emit: EmitDelta) -> ModelReply:
        """Makes one call; see :class:`openheim.providers.Provider`."""
        sent_stream_options = self._stream_options
        url = f"{self._base}/chat/completions"
        content = chat_body(request, self._parameters(request))
        timeout = self._settings.timeout_secs
        async with self._http.stream(
            "POST", url, headers=self._headers, content=content, timeout_secs=timeout
        ) as response:
            if response.status != 400:
                return await read_reply(response, ChatAssembler(emit, self._settings), self._classified)
            body = await response.read(_ERROR_BYTES)
        if b"stream_options" in body and sent_stream_options and self._may_drop_stream_options:
            # The one refusal that is worth a second request, since it costs nothing and leaves only usage unknown.
            _log.debug("the server takes no stream_options; it is asked without them from now on")
            self._stream_options = False
            return await self.generate(request, emit)
        raise self._classified(response, body)

    async def models(self) -> list[ModelInfo]:
        """The models that the service offers, by name.

        Raises:
            ProviderError: it did not say.
        """
        headers = {name: value for name, value in self._headers.items() if name != "content-type"}
        headers["accept"] = "application/json"
        timeout = self._settings.timeout_secs
        async with self._http.stream("GET", f"{self._base}/models", headers=headers, timeout_secs=timeout) as response:
            body = await response.read(_DOCUMENT_BYTES)
        if response.status != 200:
            raise self._classified(response, body)
        try:
            payload = json.loads(body)
        except (ValueError, RecursionError):
            payload = None
        entries = payload.get("data") if isinstance(payload, dict) else payload
        if not isinstance(entries, list):
            raise self._classified(response, body)
        infos = [
            _model_info(entry) for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)
        ]
        return sorted(infos, key=lambda info: info.id)

    def _parameters(self, request: ModelRequest) -> dict[str, Any]:
        parameters: dict[str, Any] = {"stream": True}
        if self._stream_options:
            parameters["stream_options"] = {"include_usage": True}
        max_tokens = request.max_tokens if request.max_tokens is not None else self._settings.max_tokens
        if max_tokens is not None:
            parameters[self._max_tokens_field] = max_tokens
        if request.thinking in _EFFORTS:
            parameters["reasoning_effort"] = request.thinking
        return parameters | self._extra_body

    def _classified(self, response: HttpResponse, body: bytes) -> ProviderError:
        return classify_error(
            response.status, response.headers, body, settings=self._settings, key_variable=self._key_variable
        )


def _model_info(entry: dict[str, Any]) -> ModelInfo:
    def size(*names: str) -> int | None:
        return next((entry[name] for name in names if isinstance(entry.get(name), int) and entry[name] > 0), None)

    return ModelInfo(
        entry["id"], size("context_window", "context_length", "max_model_len"), size("max_output_tokens", "max_tokens")
    )


if TYPE_CHECKING:
    _conforms: type[Provider] = OpenAIProvider
