"""The part of the provider contract that is about requests: what is sent, and what is left alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from openheim.errors import ProviderError
from openheim.jsontext import parse
from openheim.messages import message_to_stored
from openheim.providers import wire_of
from openheim.testing.conversations import (
    SIGNED,
    growing_conversation,
    odd_conversations,
    signed_conversation,
    user_message,
)
from openheim.testing.prefixes import PrefixGuard
from openheim.testing.provider_suite import KEY, ProviderSuite, make_call
from openheim.testing.reply_checks import check_shape

if TYPE_CHECKING:
    from openheim.providers import ModelRequest, Provider
    from openheim.testing.http import ScriptedHttp

__all__ = ("RequestChecks",)


class RequestChecks(ProviderSuite):
    async def test_request_is_left_alone(self, provider: Provider) -> None:
        messages, tools = [*odd_conversations()["with tools"], user_message(self.prompt, "last")], self.tools
        request = self._request(provider, messages=messages, tools=tools)
        before = _snapshot(request)
        await make_call(provider, request)
        assert request.messages is messages and request.tools is tools, "generate replaced a part of its request"
        assert _snapshot(request) == before, "generate changed its request"

    async def test_same_request_gives_the_same_bytes(self, provider: Provider, http: ScriptedHttp) -> None:
        """Services keep a cache of prompts by their bytes; with our own cache warm, cold or gone, they are the same."""
        messages = [*odd_conversations()["with tools"], user_message(self.prompt, "last")]
        warm: dict[str, Any] = {}
        for cache in (warm, warm, {}):
            await make_call(provider, self._request(provider, messages=list(messages), cache=cache))
        sent = {request.content for request in http.requests}
        assert len(sent) <= 1, "the same request was sent as different bytes"

    async def test_what_was_sent_before_is_sent_again(self, provider: Provider, http: ScriptedHttp) -> None:
        """While a conversation grows, each request repeats the one before to the byte, and adds to it."""
        cache: dict[str, Any] = {}
        conversation = growing_conversation()
        for end, message in enumerate(conversation, 1):
            is_within_results = end < len(conversation) and conversation[end].role == "tool"
            if message.role == "assistant" or is_within_results:
                continue  # Only what can be answered is sent.
            await make_call(provider, self._request(provider, messages=conversation[:end], cache=cache))
        guard = PrefixGuard((request.content for request in http.requests), changing=self.changing_fields)
        if http.requests:
            guard.check()

    async def test_odd_conversations(self, provider: Provider, http: ScriptedHttp) -> None:
        """Histories of other providers and broken ones give a reply or a ProviderError, and what is sent is JSON."""
        for name, messages in odd_conversations().items():
            http.requests.clear()
            try:
                reply, _ = await make_call(provider, self._request(provider, messages=messages))
            except ProviderError:
                continue
            except AssertionError:
                raise
            except Exception as err:
                raise AssertionError(f"{name}: generate raised {type(err).__name__}, no ProviderError: {err}") from err
            check_shape(reply)
            for request in http.requests:
                if any(
                    "json" in value for header, value in request.headers.items() if header.lower() == "content-type"
                ):
                    _check_json(name, request.content)

    async def test_signatures_stay_with_their_wire(self, provider: Provider, http: ScriptedHttp) -> None:
        """What another provider has signed or encrypted is refused by every service but its own."""
        await make_call(provider, self._request(provider, messages=signed_conversation("other")))
        for request in http.requests:
            for foreign in SIGNED:
                assert foreign.encode() not in request.content, (
                    "a signature or an opaque item of another wire is sent: ask message.is_from"
                )

    async def test_signatures_stay_with_their_entry(self, provider: Provider, http: ScriptedHttp) -> None:
        """Two entries of one wire are two services, and each refuses what the other has signed."""
        wire = wire_of(provider, self.model or provider.default_model)
        await make_call(provider, self._request(provider, messages=signed_conversation(wire, "another entry")))
        for request in http.requests:
            for foreign in SIGNED:
                assert foreign.encode() not in request.content, (
                    "a signature or an opaque item of another provider entry is sent: ask message.is_from"
                )

    async def test_key_goes_into_a_header(self, provider: Provider, http: ScriptedHttp) -> None:
        await make_call(provider, self._request(provider))
        for request in http.requests:
            assert KEY not in request.url, "the key is part of the address, which servers and proxies write into logs"
            assert KEY.encode() not in request.content, "the key is part of the request's body"


def _check_json(name: str, content: bytes) -> None:
    try:
        parse(content)
    except (ValueError, RecursionError) as err:
        raise AssertionError(f"{name}: what was sent is no JSON: {err}") from err


def _snapshot(request: ModelRequest) -> str:
    return json.dumps(
        [
            request.model,
            request.system,
            [message_to_stored(message) for message in request.messages],
            [[tool.name, tool.description, tool.parameters] for tool in request.tools],
        ]
    )
