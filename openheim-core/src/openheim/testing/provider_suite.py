"""What the parts of the provider contract share: what an author fills in, and how a provider is called."""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import anyio
import pytest

from openheim.providers import ModelReply, ModelRequest, ProviderSettings, ToolSpec
from openheim.testing.contract import Contract
from openheim.testing.conversations import FILE_TOOLS, user_message
from openheim.testing.http import HttpAnswer, ScriptedHttp

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from openheim.events import Delta
    from openheim.messages import Usage
    from openheim.plugins.host import PluginHost
    from openheim.providers import EmitDelta, Provider
    from openheim.testing.http import Answer

__all__ = ("KEY", "ProviderSuite", "limit", "make_call")

KEY = "contract-key-0123456789abcdef"
_LONGEST_CALL_SECS = 10


class ProviderSuite(Contract):
    """See :class:`openheim.testing.ProviderContract`, which documents the attributes."""

    kind = "providers"

    name: ClassVar[str] = ""
    options: ClassVar[Mapping[str, Any]] = {}
    api_base: ClassVar[str] = ""
    model: ClassVar[str] = ""
    answer: ClassVar[HttpAnswer | None] = None
    tool_answer: ClassVar[HttpAnswer | None] = None
    errors: ClassVar[Mapping[str, Answer]] = {}
    prompt: ClassVar[str] = "Hello, who are you?"
    tool_prompt: ClassVar[str] = ""
    tools: ClassVar[tuple[ToolSpec, ...]] = FILE_TOOLS
    reports_usage: ClassVar[bool] = False
    usage: ClassVar[Usage | None] = None
    changing_fields: ClassVar[tuple[str, ...]] = ()

    @pytest.fixture
    def settings(self, host: PluginHost) -> ProviderSettings:
        options = host.validate_settings("providers", self.name, self.options, where="options")
        return ProviderSettings("contract", self.name, self.api_base, KEY, default_model=self.model, options=options)

    @pytest.fixture
    def http(self) -> ScriptedHttp:
        return self._http(self.answer)

    @pytest.fixture
    def provider(self, host: PluginHost, settings: ProviderSettings, http: ScriptedHttp) -> Provider:
        return host.create_provider(self.name, settings, http)

    def _name(self) -> str:
        return self.name

    def _http(self, answer: Answer | None) -> ScriptedHttp:
        return ScriptedHttp(() if answer is None else itertools.repeat(answer))

    def _answers(self) -> list[HttpAnswer]:
        return [answer for answer in (self.answer, self.tool_answer) if answer is not None]

    def _request(self, provider: Provider, prompt: str = "", **changes: Any) -> ModelRequest:
        messages = [user_message(prompt or self.prompt)]
        request = ModelRequest(self.model or provider.default_model, "You are under test.", messages, self.tools)
        for name, value in changes.items():
            setattr(request, name, value)
        return request

    def _asks_for_tools(self) -> bool:
        return bool(self.tool_prompt or self.tool_answer)

    async def _tool_reply(
        self, host: PluginHost, settings: ProviderSettings, provider: Provider
    ) -> tuple[ModelReply, list[Delta]]:
        """The reply that calls a tool; from a provider that never does, the ordinary one."""
        if self.tool_answer is not None:
            provider = host.create_provider(self.name, settings, self._http(self.tool_answer))
        return await make_call(provider, self._request(provider, self.tool_prompt))


@contextmanager
def limit(problem: str) -> Iterator[None]:
    with anyio.move_on_after(_LONGEST_CALL_SECS) as scope:
        yield
    assert not scope.cancelled_caught, f"{problem} within {_LONGEST_CALL_SECS} s"


async def make_call(provider: Provider, request: ModelRequest) -> tuple[ModelReply, list[Delta]]:
    deltas: list[Delta] = []
    emit: EmitDelta = deltas.append
    with limit("generate did not end"):
        reply = await provider.generate(request, emit)
    assert isinstance(reply, ModelReply), f"generate returned {type(reply).__name__}, no ModelReply"
    return reply, deltas
