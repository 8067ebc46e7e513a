"""The provider: one request a call, its answer read as a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim import ModelInfo, read_reply
from openheim_provider_gemini.assemble import GeminiAssembler
from openheim_provider_gemini.body import request_body, response_format, tool_names
from openheim_provider_gemini.contents import WIRE
from openheim_provider_gemini.service import answer_object, resource_path, service_of
from openheim_provider_gemini.thinking import thinking_config

if TYPE_CHECKING:
    from openheim import EmitDelta, HttpClient, ModelReply, ModelRequest, Provider, ProviderSettings

__all__ = ("GeminiProvider",)

#: Models a page, and most pages that are asked for.
_PAGE = 1000
_MAX_PAGES = 20


class GeminiProvider:
    """Speaks ``streamGenerateContent``. Raises as :func:`service_of` does."""

    wire = WIRE
    default_model = "gemini-3.8-flash"
    structured_output = True

    def __init__(self, settings: ProviderSettings, http: HttpClient) -> None:
        self._settings = settings
        self._service = service_of(settings, http)

    def takes_images(self, model: str) -> bool:
        """Gemini's models do, Gemma's first ones do not; see :class:`openheim.providers.Provider`."""
        return "gemma-2" not in model

    async def generate(self, request: ModelRequest, emit: EmitDelta) -> ModelReply:
        """Makes one call; see :class:`openheim.providers.Provider`."""
        path = f"/{resource_path(request.model)}:streamGenerateContent?alt=sse"
        content = request_body(request, self._parameters(request), self._settings.name)
        assembler = GeminiAssembler(emit, tool_names(request.tools), self._settings)
        async with self._service.post(path, content) as response:
            return await read_reply(response, assembler, self._service.classified)

    async def models(self) -> list[ModelInfo]:
        """The models that generate text, by name.

        Raises:
            ProviderError: the service did not say.
        """
        from urllib.parse import quote

        found: dict[str, ModelInfo] = {}
        token = ""
        for _ in range(_MAX_PAGES):
            path = f"/models?pageSize={_PAGE}" + (f"&pageToken={quote(token, safe='')}" if token else "")
            page = await self._service.get(path, answer_object)
            entries = page.get("models")
            for entry in entries if isinstance(entries, list) else ():
                if isinstance(entry, dict) and (info := _model_info(entry)) is not None:
                    found[info.id] = info
            token = page.get("nextPageToken") or ""
            if not isinstance(token, str) or not token:
                break
        return sorted(found.values(), key=lambda info: info.id)

    def _parameters(self, request: ModelRequest) -> dict[str, Any]:
        config: dict[str, Any] = {}
        max_tokens = request.max_tokens if request.max_tokens is not None else self._settings.max_tokens
        if max_tokens is not None:
            config["maxOutputTokens"] = max_tokens
        thinking = request.thinking if request.thinking is not None else self._settings.thinking
        if (thinking_field := thinking_config(request.model, thinking)) is not None:
            config["thinkingConfig"] = thinking_field
        config |= response_format(request)
        extra = dict(self._service.extra_body)
        config |= extra.pop("generationConfig", {})
        return ({"generationConfig": config} if config else {}) | extra


def _model_info(entry: dict[str, Any]) -> ModelInfo | None:
    """What the service says about a model; None for one that generates nothing."""
    name = entry.get("name")
    methods = entry.get("supportedGenerationMethods")
    if not isinstance(name, str) or (isinstance(methods, list) and "generateContent" not in methods):
        return None

    def size(key: str) -> int | None:
        value = entry.get(key)
        return value if type(value) is int and value > 0 else None

    return ModelInfo(name.removeprefix("models/"), size("inputTokenLimit"), size("outputTokenLimit"))


if TYPE_CHECKING:
    _conforms: type[Provider] = GeminiProvider
