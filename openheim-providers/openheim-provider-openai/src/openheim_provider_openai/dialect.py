"""How the service of one entry wants to be spoken to: from its kind, the preset of its address, and its settings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from openheim_provider_openai.presets import NO_PRESET, PRESETS, preset_for

if TYPE_CHECKING:
    from openheim_provider_openai.settings import Settings

__all__ = ("CHAT", "RESPONSES", "Dialect", "dialect_of", "is_reasoning_model")

CHAT = "openai-chat"
RESPONSES = "openai-responses"

#: OpenAI's models that think first: o1 and later, gpt-5 and later, codex. They work best on the Responses wire.
_REASONING = r"(?i)(?:.*[/:])?(?:o[1-9]\d*(?![^-])|gpt-(?:[5-9]|[1-9]\d)(?!\d)(?!.*-chat)|codex-)"
#: And those that refuse whatever has to do with thinking.
_NOT_REASONING = r"(?i)(?:.*[/:])?(?:gpt-[34](?!\d)|chatgpt-|gpt-[^/]*-chat)"

#: OpenAI's models that cannot look at images.
_BLIND = r"(?i)(?:.*[/:])?(?:gpt-3|gpt-4(?:-0\d{3}|-32k|$)|o1-(?:mini|preview)|o3-mini|gpt-oss)"


class Dialect(NamedTuple):
    """What is said to a service, and how.

    Args:
        wire: the wire of every model, or None if it depends on the model.
        max_tokens_field: the Chat field that caps replies.
        stream_options: whether usage is asked for in streams; None for until the service refuses it.
        strict_roles: whether user and assistant have to take turns.
        echo_reasoning: the Chat field in which stored reasoning goes back, or ``""``.
        tool_id_pattern: what ids of calls have to match; ``""`` for the limits of the wire itself.
        response_format: how Chat is told of a schema for the reply.
        prompt_cache_key: whether Chat takes a key that leads requests of one session to one cache.
        reduces_schemas: whether parameters of tools have to be plain objects at the top.
        key_header: the header that carries the key.
        reasoning: whether models think first; None for what their names say.
        reasoning_summary: which summary of thoughts is asked for; None for ``auto`` until the service refuses it.
        reasoning_details: whether ``reasoning_details`` of replies go back with them, on Chat.
        tools: whether requests may have tools.
        images: whether models can look at images; None for what their names say.
    """

    wire: Literal["chat", "responses"] | None = "chat"
    max_tokens_field: str = "max_tokens"
    stream_options: bool | None = None
    strict_roles: bool = False
    echo_reasoning: str = ""
    tool_id_pattern: str = ""
    response_format: str = "json_schema"
    prompt_cache_key: bool = False
    reduces_schemas: bool = False
    key_header: str = "authorization"
    reasoning: bool | None = None
    reasoning_summary: str | None = None
    reasoning_details: bool = False
    tools: bool = True
    images: bool | None = False

    def wire_for(self, model: str) -> str:
        """The wire's name for a model."""
        if self.wire is None:
            return RESPONSES if is_reasoning_model(model) else CHAT
        return RESPONSES if self.wire == "responses" else CHAT

    def reasons(self, model: str) -> bool:
        """Whether a model may be asked for its thoughts, and may get them back. A name that says nothing means yes."""
        return re.match(_NOT_REASONING, model) is None if self.reasoning is None else self.reasoning

    def takes_images(self, model: str) -> bool:
        """Whether a model can look at images. On OpenAI's own service a name that says nothing means yes."""
        return re.match(_BLIND, model) is None if self.images is None else self.images


def is_reasoning_model(model: str) -> bool:
    """Whether OpenAI's name of a model says that it thinks first."""
    return re.match(_REASONING, model) is not None


def dialect_of(kind: str, api_base: str, options: Settings | None) -> Dialect:
    """The dialect of an entry.

    Args:
        kind: ``openai`` or ``openai_compatible``.
        api_base: its address.
        options: its own settings, or None if it has none.
    """
    dialect = Dialect()
    if kind == "openai":
        dialect = Dialect(
            wire=None,
            max_tokens_field="max_completion_tokens",
            prompt_cache_key=True,
            reduces_schemas=True,
            images=None,
        )
    name = (options.preset if options is not None else None) or preset_for(api_base)
    if name and name != NO_PRESET:
        quirks = PRESETS[name].quirks
        dialect = dialect._replace(prompt_cache_key=False, reduces_schemas=False, images=False)._replace(**quirks)
    if options is not None:
        own = {field: getattr(options, field) for field in _OWN if getattr(options, field) is not None}
        dialect = dialect._replace(**own)
    return dialect


#: What an entry may set itself.
_OWN = (
    "wire",
    "max_tokens_field",
    "stream_options",
    "strict_roles",
    "echo_reasoning",
    "tool_id_pattern",
    "response_format",
    "reasoning",
    "reasoning_summary",
    "reasoning_details",
    "tools",
    "images",
)
