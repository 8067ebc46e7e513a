"""What a model provider implements, and what it is handed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from openheim.errors import ServerError
    from openheim.events import Delta
    from openheim.messages import Block, Finish, Message, Usage

__all__ = (
    "EmitDelta",
    "ModelInfo",
    "ModelReply",
    "ModelRequest",
    "Provider",
    "ProviderSettings",
    "ToolSpec",
    "takes_images",
    "too_many_calls",
    "wire_of",
)

#: Tool calls of one reply: each is announced, run and stored, so that many more would be no answer but a flood.
MAX_REPLY_CALLS = 1000

#: Called by a provider for each piece of a reply as it comes. Plain and quick: it never blocks and never raises.
EmitDelta: TypeAlias = "Callable[[Delta], None]"


_CORE_KEYS = (
    "name",
    "kind",
    "api_base",
    "api_key",
    "key_variable",
    "default_model",
    "models",
    "timeout_secs",
    "max_tokens",
    "context_window",
    "thinking",
)


class ProviderSettings:
    """One ``[providers.NAME]`` entry, checked by the core; not to be changed.

    Args:
        name: the entry's name.
        kind: which plugin answers for it.
        api_base: base address without a trailing slash, or ``""`` for the plugin's own default.
        api_key: the key itself, or ``""``. Never log it, never put it into an error.
        default_model: ``""`` for the plugin's own default.
        models: the only models allowed, or empty for any.
        timeout_secs: bounds connecting, the wait for the answer to begin, and the gap between two reads, not the whole
            call.
        max_tokens: cap on the reply, or None for the provider's own.
        context_window: tokens, or None if not known.
        thinking: ``off``, ``adaptive``, a budget or an effort, or None for the plugin's default.
        options: the plugin's own ``Settings`` with the entry's other keys.
        make_options: makes them from defaults when they are first asked for, where the entry has no other keys.
        key_variable: the variable in which the key is looked for, or ``""``; for errors about the key.
    """

    def __init__(
        self,
        name: str,
        kind: str,
        api_base: str = "",
        api_key: str = "",
        default_model: str = "",
        models: tuple[str, ...] = (),
        timeout_secs: float = 120.0,
        max_tokens: int | None = None,
        context_window: int | None = None,
        thinking: str | int | None = None,
        options: Any = None,
        make_options: Callable[[], Any] | None = None,
        key_variable: str = "",
    ) -> None:
        self.name = name
        self.kind = kind
        self.api_base = api_base
        self.api_key = api_key
        self.default_model = default_model
        self.models = models
        self.timeout_secs = timeout_secs
        self.max_tokens = max_tokens
        self.context_window = context_window
        self.thinking = thinking
        self.key_variable = key_variable
        #: Whether the entry has keys of the plugin's own. Where it has none, a plugin that knows its defaults need not
        #: ask for ``options``, which takes importing pydantic.
        self.has_own_options = options is not None
        self._options = options
        self._make_options = make_options

    def with_options(self, options: Any, make_options: Callable[[], Any]) -> ProviderSettings:
        """The same entry with the plugin's own settings; see above."""
        copy = ProviderSettings(**{name: getattr(self, name) for name in _CORE_KEYS})
        copy.has_own_options = options is not None
        copy._options, copy._make_options = options, make_options
        return copy

    def __repr__(self) -> str:
        # Not the address either: it may hold a user and a password.
        return f"ProviderSettings({self.name!r}, {self.kind!r})"

    @property
    def options(self) -> Any:
        """An instance of the plugin's own ``Settings``, or None if the plugin has no such model."""
        if self._options is None and self._make_options is not None:
            self._options = self._make_options()
        return self._options

    @property
    def secrets(self) -> tuple[str, ...]:
        """What of the entry must not be shown: the key, and what :attr:`options` has of credentials in
        ``extra_headers``. The longest comes first, for one may be part of another."""
        headers = getattr(self._options, "extra_headers", None) if self.has_own_options else None
        found = {self.api_key}
        if headers:
            from openheim.headers import secrets_in_headers

            found.update(secrets_in_headers(headers))
        return tuple(sorted(filter(None, found), key=len, reverse=True))


@dataclass(slots=True, frozen=True)
class ToolSpec:
    """A tool as the model sees it. ``parameters`` is a JSON Schema object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(slots=True)
class ModelRequest:
    """One model call.

    Args:
        model: name on the provider's side.
        system: system text, or ``""``.
        messages: the conversation. Every tool call in it is answered. Messages are immutable, and an unchanged one is
            the same object in the next request.
        tools: sorted by name; the same tuple object while nothing changed.
        max_tokens: cap on the reply, or None.
        thinking: see :class:`ProviderSettings`.
        cache: kept for the session and this provider; a place for bytes already made from messages. Using it is
            optional.
        response_schema: a JSON Schema that the text of the reply has to match, unless it calls tools; or None.
        session_id: the session that asks, or ``""``: for services that route requests of one session to one cache.
        max_output_tokens: what the model can write at most, as its service lists it, or None. It is no wish: only a
            provider that has to send a cap where the user set none should not send more, as the Messages wire does.
    """

    model: str
    system: str
    messages: Sequence[Message]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int | None = None
    thinking: str | int | None = None
    cache: dict[str, Any] = field(default_factory=dict)
    response_schema: Mapping[str, Any] | None = None
    session_id: str = ""
    max_output_tokens: int | None = None


@dataclass(slots=True, frozen=True)
class ModelReply:
    """A finished reply: blocks in the order received, how it ended, what it cost if the service said so.

    ``opaque`` holds items of the wire that have to be sent back as they came (encrypted reasoning, for instance).
    """

    content: tuple[Block, ...]
    finish: Finish
    usage: Usage | None = None
    model: str | None = None
    opaque: Mapping[str, Any] | None = None


@dataclass(slots=True, frozen=True)
class ModelInfo:
    """A model that the service offers; sizes in tokens where it says them."""

    id: str
    context_window: int | None = None
    max_output_tokens: int | None = None


class Provider(Protocol):
    """A model service. One object serves every session that uses its entry, concurrently.

    ``wire`` names the protocol spoken. ``default_model`` is used when nobody names a model; ``""`` where the plugin
    cannot know one, and then somebody has to.

    A provider may also have ``async models() -> list[ModelInfo]`` and ``async aclose() -> None``. One that has a fixed
    set of models may name them in ``known_models: tuple[str, ...]``; asking for another is then refused beforehand.
    One whose protocol depends on the model has ``wire_for(model: str) -> str``; ``wire`` is then that of its default.
    One that tells the model of ``response_schema`` by itself, in whatever way its service has, says so with
    ``structured_output = True``; for any other, the schema is in the system text. The core checks what comes in any
    case.

    One whose models can look at images has ``takes_images(model: str) -> bool``. Where it is missing or says no, tools
    are told not to answer with images. What the user adds to a prompt is sent in any case.

    What ``models`` says is kept when the user asks for it (``openheim models --refresh``), and its sizes are used where
    the settings have none.
    """

    wire: str
    default_model: str

    async def generate(self, request: ModelRequest, emit: EmitDelta) -> ModelReply:
        """Makes one call, passes on each piece through ``emit`` as it comes, and returns the whole reply.

        It streams always, does not retry (the core does, knowing what was shown), and closes its connection when
        cancelled.

        Raises:
            ProviderError: one class per cause (see :mod:`openheim.errors`), with ``partial`` holding what had arrived.
        """
        ...


def wire_of(provider: Provider, model: str) -> str:
    """The wire that a provider speaks for a model."""
    wire_for: Callable[[str], str] | None = getattr(provider, "wire_for", None)
    return provider.wire if wire_for is None else wire_for(model)


def takes_images(provider: Provider, model: str) -> bool:
    """Whether a model can look at images, as far as its provider says so."""
    says: Callable[[str], bool] | None = getattr(provider, "takes_images", None)
    return says is not None and says(model) is True


def too_many_calls(usage: Usage | None = None) -> ServerError:
    """The error for a reply with more than :data:`MAX_REPLY_CALLS` calls, which cost this as far as it is known."""
    from openheim.errors import ServerError

    return ServerError(
        f"the model asked for more than {MAX_REPLY_CALLS} tool calls in one reply",
        hint="ask for less at a time",
        retryable=False,
        usage=usage,
    )
