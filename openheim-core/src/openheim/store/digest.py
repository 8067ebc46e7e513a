"""What a log says about its session: folded line by line, so that it can go on where it stopped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from openheim.messages import Usage
from openheim.store.meta import SessionMeta, state_in, title_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ("LogDigest", "Price", "Totals", "text_of", "totals_of")


class Price(Protocol):
    """Cost per million tokens, in any currency; ``[providers.NAME.price]`` of the settings has this shape."""

    input: float
    output: float
    cache_read: float
    cache_write: float


@dataclass(slots=True)
class Totals:
    """What a session has used, its summaries included.

    Args:
        turns: prompts of the user.
        usage: tokens by provider and model; ``""`` where a message names none.
    """

    messages: int = 0
    turns: int = 0
    usage: dict[tuple[str, str], Usage] = field(default_factory=dict)

    @property
    def tokens(self) -> Usage:
        """The tokens of all models."""
        return sum(self.usage.values(), Usage())

    def to_dict(self, cost: float | None = None) -> dict[str, Any]:
        """As JSON has it: ``messages``, ``turns``, the counts of tokens, and ``cost``, None where it is not known."""
        return {"messages": self.messages, "turns": self.turns, **self.tokens.to_dict(), "cost": cost}

    def cost(self, price: Callable[[str, str], Price | None]) -> float | None:
        """What it cost, in the currency of the prices.

        Args:
            price: of a provider's model, or None if it is not known.

        Returns:
            None if a price is missing for a model that was used: a part would look like the whole.
        """
        total = 0.0
        for (provider, model), used in self.usage.items():
            one = price(provider, model)
            if one is None:
                return None
            total += used.input_tokens * one.input + used.output_tokens * one.output
            total += used.cache_read_tokens * one.cache_read + used.cache_creation_tokens * one.cache_write
        return total / 1_000_000


@dataclass(slots=True)
class LogDigest:
    """Facts about a session that its log holds.

    Args:
        title: the latest one that was given by hand.
        state: what records said of mode, model, skills and directory, the last word on each.
        decisions: remembered answers to permission questions.
        first_prompt: beginning of the first message of the user that has text.
        first_at, last_at: times of the first and last message that has one.
        provider, model: of the latest reply.
    """

    totals: Totals = field(default_factory=Totals)
    title: str | None = None
    state: dict[str, Any] = field(default_factory=dict)
    decisions: dict[str, str] = field(default_factory=dict)
    archived: bool = False
    first_prompt: str | None = None
    first_at: str = ""
    last_at: str = ""
    provider: str | None = None
    model: str | None = None

    def add_record(self, raw: Mapping[str, Any]) -> None:
        """Takes a record into account."""
        match raw:
            case {"record": "title", "title": str(title)} if title:
                self.title = title
            case {"record": "archived"}:
                self.archived = True
            case {"record": "approval", "key": str(key), "decision": "allow" | "deny" as decision}:
                self.decisions[key] = decision
            case {"record": "compaction"}:
                self._add_usage(raw)
            case _:
                self.state |= state_in(raw)

    def add_message(self, raw: Mapping[str, Any]) -> None:
        """Takes a message in its stored form into account."""
        self.totals.messages += 1
        created = raw.get("created_at")
        if isinstance(created, str) and created:
            self.first_at = self.first_at or created
            self.last_at = created
        role = raw.get("role")
        if role == "user":
            self.totals.turns += 1
            if self.first_prompt is None:
                self.first_prompt = title_of(text_of(raw))
        elif role == "assistant":
            self._add_reply(raw)

    def _add_reply(self, raw: Mapping[str, Any]) -> None:
        provider, model = _model_of(raw)
        self.provider = provider or self.provider
        self.model = model or self.model
        self._add_usage(raw)

    def _add_usage(self, raw: Mapping[str, Any]) -> None:
        """Counts what a model call cost."""
        provider, model = _model_of(raw)
        usage = raw.get("usage")
        if isinstance(usage, dict):
            key = provider or "", model or ""
            self.totals.usage[key] = self.totals.usage.get(key, Usage()) + Usage.from_dict(usage)

    def complete(self, meta: SessionMeta | None, session_id: str) -> SessionMeta:
        """The metadata with what the log knows better; made from the log alone if there is none."""
        if meta is None:
            meta = SessionMeta(
                session_id,
                self.first_at,
                self.last_at,
                title=self.first_prompt,
                model=self.model,
                provider=self.provider,
            )
        meta.id = session_id
        # Records are written before the metadata is, which may be older, and need not be whole.
        for name, value in self.state.items():
            setattr(meta, name, value)
        if self.decisions:
            known = meta.extra.get("decisions")
            meta.extra["decisions"] = (known if isinstance(known, dict) else {}) | self.decisions
        meta.title = self.title or meta.title
        meta.archived = meta.archived or self.archived
        return meta

    def to_dict(self) -> dict[str, Any]:
        """For keeping it; :meth:`from_dict` reads it."""
        kept = {name: getattr(self, name) for name in self.__slots__ if name != "totals"}
        usage = [[*key, *used.to_dict().values()] for key, used in self.totals.usage.items()]
        return kept | {"messages": self.totals.messages, "turns": self.totals.turns, "usage": usage}

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> LogDigest:
        """Reads what :meth:`to_dict` gave."""
        rest = dict(kept)
        usage = {(provider, model): Usage(*counts) for provider, model, *counts in rest.pop("usage")}
        return cls(Totals(rest.pop("messages"), rest.pop("turns"), usage), **rest)


def _model_of(raw: Mapping[str, Any]) -> tuple[str | None, str | None]:
    provider, model = (value if isinstance(value, str) else None for value in (raw.get("provider"), raw.get("model")))
    return provider, model


def text_of(raw: Mapping[str, Any]) -> str:
    """The text blocks of a stored message, each on lines of its own."""
    content = raw.get("content")
    if not isinstance(content, list):
        return ""
    return "\n".join(
        block["text"]
        for block in content
        if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)
    )


def totals_of(messages: Iterable[Mapping[str, Any]], records: Iterable[Mapping[str, Any]]) -> Totals:
    """Totals of messages and records in their stored form."""
    digest = LogDigest()
    for raw in messages:
        digest.add_message(raw)
    for raw in records:
        digest.add_record(raw)
    return digest.totals
