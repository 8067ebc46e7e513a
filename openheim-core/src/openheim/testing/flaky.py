"""A provider that fails on purpose, around any other provider."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from openheim.errors import IncompleteStreamError, ProviderError
from openheim.events import TextDelta, ThinkingDelta
from openheim.messages import TextBlock, ThinkingBlock
from openheim.providers import takes_images, wire_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openheim.events import Delta
    from openheim.messages import Block
    from openheim.providers import EmitDelta, ModelInfo, ModelReply, ModelRequest, Provider
    from openheim.testing.scripted import Pause

__all__ = ("Fault", "FlakyProvider")


@dataclass(slots=True, frozen=True)
class Fault:
    """What goes wrong with one call.

    Args:
        error: what the call fails with, or None to let it succeed (after ``pause``).
        after: number of deltas that get out before the failure; 0 fails before the inner provider is called.
        pause: holds the call before it starts.
    """

    error: ProviderError | None = None
    after: int = 0
    pause: Pause | None = None

    @classmethod
    def drop(cls, after: int) -> Fault:
        """The connection is lost once ``after`` deltas got out."""
        return cls(IncompleteStreamError("the stream ended before its end marker"), after)


class FlakyProvider:
    """Passes calls on to ``inner``, except that those numbered in ``faults`` (from 1) go wrong.

    Attributes:
        calls: number of calls so far.
    """

    def __init__(self, inner: Provider, faults: Mapping[int, Fault]) -> None:
        self.inner = inner
        self.faults = dict(faults)
        self.calls = 0

    @property
    def wire(self) -> str:
        return self.inner.wire

    @property
    def default_model(self) -> str:
        return self.inner.default_model

    def wire_for(self, model: str) -> str:
        return wire_of(self.inner, model)

    def takes_images(self, model: str) -> bool:
        return takes_images(self.inner, model)

    async def generate(self, request: ModelRequest, emit: EmitDelta) -> ModelReply:
        self.calls += 1
        fault = self.faults.get(self.calls, Fault())
        if fault.pause is not None:
            await fault.pause.hold()
        if fault.error is None:
            return await self.inner.generate(request, emit)
        partial: list[Block] = []
        if fault.after > 0:
            await self._until(fault.after, request, emit, partial)
        error = copy.copy(fault.error)
        if not error.partial:
            error.partial = tuple(partial)
        raise error

    async def _until(self, after: int, request: ModelRequest, emit: EmitDelta, partial: list[Block]) -> None:
        """Runs the inner call until ``after`` deltas got out, and cancels it there."""
        passed = 0
        with anyio.CancelScope() as scope:

            def counting(delta: Delta) -> None:
                nonlocal passed
                if passed == after:
                    return  # The inner provider has not noticed its cancellation yet.
                emit(delta)
                _keep(delta, partial)
                passed += 1
                if passed == after:
                    scope.cancel()

            await self.inner.generate(request, counting)

    async def models(self) -> list[ModelInfo]:
        models = getattr(self.inner, "models", None)
        return [] if models is None else await models()

    async def aclose(self) -> None:
        close = getattr(self.inner, "aclose", None)
        if close is not None:
            await close()


def _keep(delta: Delta, partial: list[Block]) -> None:
    before = partial[-1] if partial else None
    match delta:
        case TextDelta() if isinstance(before, TextBlock):
            partial[-1] = TextBlock(before.text + delta.text)
        case TextDelta():
            partial.append(TextBlock(delta.text))
        case ThinkingDelta() if isinstance(before, ThinkingBlock):
            partial[-1] = ThinkingBlock(before.thinking + delta.text)
        case ThinkingDelta():
            partial.append(ThinkingBlock(delta.text))
        case _:
            pass  # A call that is not complete is no block.
