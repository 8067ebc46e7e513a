"""The contract of providers, as a suite to inherit. Importing this takes pytest."""

from __future__ import annotations

import inspect
import json
import socket
import subprocess
from typing import TYPE_CHECKING, Any

import anyio

from openheim.errors import ProviderError
from openheim.messages import TextBlock, ThinkingBlock, ToolUseBlock
from openheim.providers import ModelInfo, ModelReply
from openheim.testing.contract import report_of
from openheim.testing.http import ScriptedHttp
from openheim.testing.imports import HEAVY_MODULES
from openheim.testing.provider_requests import RequestChecks
from openheim.testing.provider_streams import StreamChecks
from openheim.testing.provider_suite import make_call
from openheim.testing.provider_trouble import TroubleChecks
from openheim.testing.reply_checks import check_shape, runs_of

if TYPE_CHECKING:
    import pytest

    from openheim.events import Delta
    from openheim.plugins.host import PluginHost
    from openheim.providers import Provider, ProviderSettings

__all__ = ("ProviderContract",)


class ProviderContract(StreamChecks, RequestChecks, TroubleChecks):
    """Tests for a plugin of group ``openheim.providers``::

        class TestParrot(ProviderContract):
            plugin = "acme_openheim_parrot.plugin"
            name = "parrot"

    No test opens a connection. A provider that speaks to a service is answered from the attributes below.

    Attributes:
        name: the entry point's name.
        options: the plugin's own keys of a ``[providers.NAME]`` entry.
        api_base: address of the service, for a provider that knows none by itself.
        model: the model to ask, for a provider without a default.
        answer: what the service answers to a greeting; None for a provider that makes no requests.
        tool_answer: what it answers when it wants a tool called; None if that takes no request, or never happens.
        errors: kinds of errors (see :mod:`openheim.errors`), each with what the service answers then. What all services
            have in common (statuses, connections that break, streams that end too soon) is tried anyway; here belongs
            what only this one says, such as how it refuses a request that is too long, or fails inside a stream.
        prompt: the greeting.
        tool_prompt: a prompt that makes the provider call a tool, or ``""`` if it never does without a ``tool_answer``.
        tools: what the model is offered; by default ``list_dir`` and ``read_file``.
        reports_usage: whether every reply says what it cost.
        usage: what the reply to ``answer`` is to cost: ``input_tokens`` without those read from or written to a cache.
        changing_fields: fields of requests that are no part of the prompt and may differ each time.
    """

    # Shape

    def test_members(self, provider: Provider, http: ScriptedHttp) -> None:
        for member in ("wire", "default_model"):
            value = getattr(provider, member)
            assert isinstance(value, str), f"{member} is {value!r}, not a name"
            if not value.strip():
                assert member == "default_model" and self.model, f"{member} is blank, and the suite names no model"
        for method in ("generate", "models", "aclose"):
            function = getattr(provider, method, None)
            assert method != "generate" or function is not None, "there is no method generate"
            assert function is None or inspect.iscoroutinefunction(function), f"{method} is not async"
        assert not http.requests, "creating the provider makes a request; users with many entries would wait for each"

    async def test_reply_has_legal_shape(
        self, host: PluginHost, settings: ProviderSettings, provider: Provider
    ) -> None:
        plain, _ = await make_call(provider, self._request(provider))
        calling, _ = await self._tool_reply(host, settings, provider)
        for reply in (plain, calling):
            check_shape(reply)
            if self.reports_usage:
                assert reply.usage is not None, "reports_usage is set, and a reply has no usage"
        assert plain.content, "the reply to a greeting is empty"

    async def test_tool_calls_are_complete(
        self, host: PluginHost, settings: ProviderSettings, provider: Provider
    ) -> None:
        reply, _ = await self._tool_reply(host, settings, provider)
        calls = [block for block in reply.content if isinstance(block, ToolUseBlock)]
        if self._asks_for_tools():
            assert calls, "the reply asks for no tool, though tool_prompt or tool_answer is set"
        assert (reply.finish == "tool_use") == bool(calls), f"finish is {reply.finish} with {len(calls)} tool calls"
        assert len({call.id for call in calls}) == len(calls), "two calls have the same id"
        for call in calls:
            assert call.id.strip(), f"a call of {call.name} has no id"
            assert call.name in {tool.name for tool in self.tools}, f"{call.name!r} is no tool that was offered"
            assert isinstance(json.loads(call.arguments), dict), f"the arguments of {call.name} are no JSON object"

    async def test_models_are_listed(self, host: PluginHost, settings: ProviderSettings) -> None:
        """Of a provider that lists its models; with no connection it may say so."""
        provider = host.create_provider(self.name, settings, ScriptedHttp())
        models = getattr(provider, "models", None)
        try:
            listed = [] if models is None else await models()
        except ProviderError:
            return
        assert all(isinstance(model, ModelInfo) and model.id.strip() for model in listed), "not all are a ModelInfo"

    async def test_usage_is_what_the_service_counted(self, provider: Provider) -> None:
        if self.usage is not None:
            reply, _ = await make_call(provider, self._request(provider))
            assert reply.usage == self.usage, f"the usage is {reply.usage}, not {self.usage}"

    # Manners

    async def test_creating_and_calling_opens_nothing_of_its_own(
        self, host: PluginHost, settings: ProviderSettings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Services are reached through the client that is handed over: it knows proxies, and closes what it opens."""
        opened: list[str] = []

        def refuse(what: str) -> Any:
            def refused(*arguments: Any, **named: Any) -> Any:
                opened.append(what)
                raise OSError(f"{what} is refused by the contract suite")

            return refused

        for owner, name in ((socket.socket, "connect"), (socket, "getaddrinfo"), (subprocess.Popen, "__init__")):
            monkeypatch.setattr(owner, name, refuse(f"{owner.__name__}.{name}"))
        try:
            provider = host.create_provider(self.name, settings, self._http(self.answer))
            await make_call(provider, self._request(provider))
        finally:
            monkeypatch.undo()
            assert not opened, f"the provider does this by itself: {', '.join(opened)}"

    def test_creating_is_cheap(self, provider: Provider) -> None:
        """Every run waits for it. The settings' model takes pydantic; nothing else should be heavy."""
        heavy = set(HEAVY_MODULES) - {"pydantic"}
        module = type(provider).__module__
        loaded = report_of(module).loaded(*sorted(heavy))
        assert not loaded, f"{module} imports {', '.join(loaded)}; import it where it is used, or do without"

    async def test_calls_at_a_time_do_not_mix(self, provider: Provider) -> None:
        results: list[tuple[ModelReply, list[Delta]]] = []

        async def call(prompt: str) -> None:
            results.append(await make_call(provider, self._request(provider, prompt)))

        async with anyio.create_task_group() as tasks:
            for number in range(3):
                tasks.start_soon(call, f"{self.prompt} {number}")
        for reply, deltas in results:
            said = [block for block in reply.content if isinstance(block, TextBlock | ThinkingBlock)]
            assert runs_of(deltas) == runs_of(said), "a call was streamed what belongs to another"

    async def test_closing_twice_is_harmless(self, provider: Provider) -> None:
        close = getattr(provider, "aclose", None)
        for _ in range(2):
            if close is not None:
                await close()
