"""The contract of providers, as a suite to inherit. Importing this takes pytest."""

from __future__ import annotations

import inspect
import itertools
import json
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import anyio
import anyio.lowlevel
import pytest

from openheim.errors import ProviderConnectionError, ProviderError
from openheim.messages import TextBlock, ThinkingBlock, ToolUseBlock, message_to_stored
from openheim.providers import ModelInfo, ModelReply, ModelRequest, ProviderSettings, ToolSpec
from openheim.testing.contract import Contract
from openheim.testing.conversations import FILE_TOOLS, odd_conversations, user_message
from openheim.testing.http import HttpAnswer, ScriptedHttp
from openheim.testing.reply_checks import check_shape, check_streamed_calls, runs_of
from openheim.testing.scripted import Pause

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from openheim.events import Delta
    from openheim.plugins.host import PluginHost
    from openheim.providers import EmitDelta, Provider
    from openheim.testing.http import Answer

__all__ = ("ProviderContract",)

_KEY = "contract-key-0123456789abcdef"
_LONGEST_CALL_SECS = 10


class ProviderContract(Contract):
    """Tests for a plugin of group ``openheim.providers``::

        class TestParrot(ProviderContract):
            plugin = "acme_openheim_parrot.plugin"
            name = "parrot"

    No test opens a connection. A provider that speaks to a service is answered from the attributes below.

    Attributes:
        name: the entry point's name.
        options: the plugin's own keys of a ``[providers.NAME]`` entry.
        api_base: address of the service, for a provider that knows none by itself.
        answer: what the service answers to a greeting; None for a provider that makes no requests.
        tool_answer: what it answers when it wants a tool called; None if that takes no request, or never happens.
        prompt: the greeting.
        tool_prompt: a prompt that makes the provider call a tool, or ``""`` if it never does without a ``tool_answer``.
        tools: what the model is offered; by default ``list_dir`` and ``read_file``.
        reports_usage: whether every reply says what it cost.
    """

    kind = "providers"

    name: ClassVar[str] = ""
    options: ClassVar[Mapping[str, Any]] = {}
    api_base: ClassVar[str] = ""
    answer: ClassVar[HttpAnswer | None] = None
    tool_answer: ClassVar[HttpAnswer | None] = None
    prompt: ClassVar[str] = "Hello, who are you?"
    tool_prompt: ClassVar[str] = ""
    tools: ClassVar[tuple[ToolSpec, ...]] = FILE_TOOLS
    reports_usage: ClassVar[bool] = False

    @pytest.fixture
    def settings(self, host: PluginHost) -> ProviderSettings:
        options = host.validate_settings("providers", self.name, self.options, where="options")
        return ProviderSettings("contract", self.name, self.api_base, _KEY, options=options)

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

    def _request(self, provider: Provider, prompt: str = "", **changes: Any) -> ModelRequest:
        messages = [user_message(prompt or self.prompt)]
        request = ModelRequest(provider.default_model, "You are under test.", messages, self.tools)
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
        return await _call(provider, self._request(provider, self.tool_prompt))

    # Shape

    def test_members(self, provider: Provider, http: ScriptedHttp) -> None:
        for member in ("wire", "default_model"):
            value = getattr(provider, member)
            assert isinstance(value, str) and value.strip(), f"{member} is {value!r}, not a name"
        for method in ("generate", "models", "aclose"):
            function = getattr(provider, method, None)
            assert method != "generate" or function is not None, "there is no method generate"
            assert function is None or inspect.iscoroutinefunction(function), f"{method} is not async"
        assert not http.requests, "creating the provider makes a request; users with many entries would wait for each"

    async def test_reply_has_legal_shape(
        self, host: PluginHost, settings: ProviderSettings, provider: Provider
    ) -> None:
        plain, _ = await _call(provider, self._request(provider))
        calling, _ = await self._tool_reply(host, settings, provider)
        for reply in (plain, calling):
            check_shape(reply)
            if self.reports_usage:
                assert reply.usage is not None, "reports_usage is set, and a reply has no usage"
        assert plain.content, "the reply to a greeting is empty"

    async def test_deltas_make_the_reply(
        self, host: PluginHost, settings: ProviderSettings, provider: Provider
    ) -> None:
        """What was streamed, in order, is what the reply holds."""
        for reply, deltas in (
            await _call(provider, self._request(provider)),
            await self._tool_reply(host, settings, provider),
        ):
            said = [block for block in reply.content if isinstance(block, TextBlock | ThinkingBlock)]
            assert runs_of(deltas) == runs_of(said), "the streamed text and thinking differ from the reply's"
            check_streamed_calls(deltas, reply)

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

    # Manners

    async def test_request_is_left_alone(self, provider: Provider) -> None:
        messages, tools = [*odd_conversations()["with tools"], user_message(self.prompt, "last")], self.tools
        request = self._request(provider, messages=messages, tools=tools)
        before = _snapshot(request)
        await _call(provider, request)
        assert request.messages is messages and request.tools is tools, "generate replaced a part of its request"
        assert _snapshot(request) == before, "generate changed its request"

    async def test_same_request_gives_the_same_bytes(self, provider: Provider, http: ScriptedHttp) -> None:
        """Services keep a cache of prompts by their bytes; with our own cache warm, cold or gone, they are the same."""
        messages = [*odd_conversations()["with tools"], user_message(self.prompt, "last")]
        warm: dict[str, Any] = {}
        for cache in (warm, warm, {}):
            await _call(provider, self._request(provider, messages=list(messages), cache=cache))
        sent = {request.content for request in http.requests}
        assert len(sent) <= 1, "the same request was sent as different bytes"

    async def test_calls_at_a_time_do_not_mix(self, provider: Provider) -> None:
        results: list[tuple[ModelReply, list[Delta]]] = []

        async def call(prompt: str) -> None:
            results.append(await _call(provider, self._request(provider, prompt)))

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

    # Trouble

    async def test_cancelled_before_it_starts(self, provider: Provider) -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await provider.generate(self._request(provider), lambda delta: None)
        assert scope.cancelled_caught, "generate ran to its end though it was cancelled; it has to await something"

    async def test_cancelled_in_the_middle(self, host: PluginHost, settings: ProviderSettings) -> None:
        """It ends at once, closes its exchange, and nothing goes on in the background."""
        pause = Pause()
        http = self._http(None if self.answer is None else self.answer.cut(pause))
        provider = host.create_provider(self.name, settings, http)
        tasks_before = {task.id for task in anyio.get_running_tasks()}
        deltas: list[Delta] = []
        with _limit("generate did not end after it was cancelled"):
            async with anyio.create_task_group() as tasks:

                def emit(delta: Delta) -> None:
                    deltas.append(delta)
                    if self.answer is None:
                        tasks.cancel_scope.cancel()

                tasks.start_soon(provider.generate, self._request(provider), emit)
                if self.answer is not None:
                    await pause.reached()
                    tasks.cancel_scope.cancel()
        seen = len(deltas)
        pause.release()
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        assert len(deltas) == seen, "deltas came after generate had ended"
        assert http.active == 0, "the exchange with the service is still open"
        left = [task.name for task in anyio.get_running_tasks() if task.id not in tasks_before]
        assert not left, f"tasks are left running: {left}"

    @pytest.mark.parametrize(
        "trouble",
        ["no connection", "broken stream", "stream cut short", "not the wire", "empty", "401", "429", "500"],
    )
    async def test_failures_are_provider_errors(
        self, host: PluginHost, settings: ProviderSettings, caplog: pytest.LogCaptureFixture, trouble: str
    ) -> None:
        """Whatever the service does, what comes out is a ProviderError that does not hold the key."""
        caplog.set_level(logging.DEBUG)
        provider = host.create_provider(self.name, settings, self._http(self._trouble(trouble)))
        request = self._request(provider)
        try:
            await _call(provider, request)
        except ProviderError as err:
            texts = [str(err), repr(err), err.hint, caplog.text]
            assert not any(_KEY in text for text in texts), f"the key shows in an error or a log ({trouble})"
        except Exception as err:
            raise AssertionError(f"{trouble}: generate raised {type(err).__name__}, no ProviderError: {err}") from err
        else:
            assert self.answer is None, f"{trouble}: generate gave a reply"

    def _trouble(self, trouble: str) -> Answer | None:
        if trouble == "no connection":
            return None
        if trouble == "broken stream":
            return (self.answer or HttpAnswer()).cut(ProviderConnectionError("the connection broke"))
        if trouble == "stream cut short":
            return (self.answer or HttpAnswer()).cut()
        if trouble == "not the wire":
            return HttpAnswer.of("<html>\n<p>Hello</p>\n</html>", content_type="text/html")
        if trouble == "empty":
            return HttpAnswer()
        # Services quote the key they were given.
        body = json.dumps({"error": {"message": f"no luck with key {_KEY}", "type": "error", "code": int(trouble)}})
        return HttpAnswer.of(body, status=int(trouble), content_type="application/json")

    @pytest.mark.parametrize("conversation", sorted(odd_conversations()))
    async def test_odd_conversations(self, provider: Provider, conversation: str) -> None:
        """Histories of other providers and broken ones give a reply or a ProviderError."""
        request = self._request(provider, messages=odd_conversations()[conversation])
        try:
            reply, _ = await _call(provider, request)
        except ProviderError:
            return
        check_shape(reply)

    async def test_key_does_not_show(
        self, provider: Provider, settings: ProviderSettings, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        await _call(provider, self._request(provider))
        for text in (repr(provider), str(provider), repr(settings.options), caplog.text):
            assert _KEY not in text, "the key shows in a repr or a log"


@contextmanager
def _limit(problem: str) -> Iterator[None]:
    with anyio.move_on_after(_LONGEST_CALL_SECS) as scope:
        yield
    assert not scope.cancelled_caught, f"{problem} within {_LONGEST_CALL_SECS} s"


async def _call(provider: Provider, request: ModelRequest) -> tuple[ModelReply, list[Delta]]:
    deltas: list[Delta] = []
    emit: EmitDelta = deltas.append
    with _limit("generate did not end"):
        reply = await provider.generate(request, emit)
    assert isinstance(reply, ModelReply), f"generate returned {type(reply).__name__}, no ModelReply"
    return reply, deltas


def _snapshot(request: ModelRequest) -> str:
    return json.dumps(
        [
            request.model,
            request.system,
            [message_to_stored(message) for message in request.messages],
            [[tool.name, tool.description, tool.parameters] for tool in request.tools],
        ]
    )
