"""A model server that takes no malformed conversation: what the strictest services of Chat Completions check."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.support.openai_wire import error
from tests.support.replies import Reply
from tests.support.server import Request

__all__ = ("problems_of", "strictly")


def strictly(answer: Callable[[Request], Reply]) -> Callable[[Request], Reply]:
    """Answers only requests that are in order; others are refused with the reason, as a service would."""

    def reply(request: Request) -> Reply:
        found = problems_of(request.json)
        return error(400, f"malformed conversation: {'; '.join(found)}") if found else answer(request)

    return reply


def problems_of(body: Mapping[str, Any]) -> list[str]:
    """What is wrong with the messages of a request; nothing, hopefully."""
    found: list[str] = []
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return ["there are no messages"]
    open_calls: set[str] = set()
    seen_calls: set[str] = set()
    for place, message in enumerate(messages):
        role = message.get("role")
        if role == "tool":
            if message.get("tool_call_id") not in open_calls:
                found.append(f"message {place} answers no open call")
            open_calls.discard(message.get("tool_call_id"))
            if not isinstance(message.get("content"), str):
                found.append(f"message {place} has no text")
            continue
        if open_calls:
            found.append(f"message {place} comes before the answers to {sorted(open_calls)}")
            open_calls.clear()
        if role == "assistant":
            calls = message.get("tool_calls") or []
            if not calls and not message.get("content"):
                found.append(f"message {place} is empty")
            for call in calls:
                found += _problems_of_call(place, call, seen_calls)
                seen_calls.add(call.get("id"))
                open_calls.add(call.get("id"))
        elif role in ("user", "system", "developer"):
            if not message.get("content"):
                found.append(f"message {place} is empty")
        else:
            found.append(f"message {place} has the role {role!r}")
    if open_calls:
        found.append(f"nothing answers {sorted(open_calls)}")
    if messages[-1].get("role") not in ("user", "tool"):
        found.append("the last message is not the user's nor a tool's")
    return found


def _problems_of_call(place: int, call: Mapping[str, Any], seen: set[str]) -> list[str]:
    found = []
    if not call.get("id") or call.get("id") in seen:
        found.append(f"message {place} has a call without an id of its own")
    try:
        arguments = json.loads(call["function"]["arguments"])
    except (KeyError, TypeError, ValueError):
        arguments = None
    if not isinstance(arguments, dict) or not call["function"].get("name"):
        found.append(f"message {place} has a call that is no call")
    return found
