"""Whether a provider's answer is what it claims to be: what is stored of it has to be readable again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

from openheim.agent.blocks import block_problem
from openheim.jsontext import MAX_DEPTH, is_deep
from openheim.messages import (
    Finish,
    ImageBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    UnknownBlock,
    Usage,
)
from openheim.providers import ModelReply

if TYPE_CHECKING:
    from openheim.errors import ProviderError

__all__ = ("reply_problem", "with_usable_details")

#: In the order of how often they occur.
_BLOCKS = (TextBlock, ToolUseBlock, ThinkingBlock, RedactedThinkingBlock, ImageBlock, UnknownBlock)
_FINISHES = frozenset(get_args(Finish))

#: Beyond any count of tokens, and within what every reader of JSON takes for an integer.
_MAX_COUNT = 2**53


def reply_problem(reply: Any) -> str:
    """What is wrong with what :meth:`~openheim.providers.Provider.generate` returned; ``""`` if nothing is."""
    if not isinstance(reply, ModelReply):
        return f"it returned {type(reply).__name__} instead of a ModelReply"
    if not isinstance(reply.content, tuple | list):
        return f"its reply's content is {type(reply.content).__name__} and not a tuple of blocks"
    for block in reply.content:
        if problem := block_problem(block, _BLOCKS):
            return f"its reply holds {problem}"
    if not isinstance(reply.finish, str) or reply.finish not in _FINISHES:
        return f"its reply's finish is {reply.finish!r:.80}, not one of {', '.join(get_args(Finish))}"
    if reply.usage is not None and (problem := _usage_problem(reply.usage)):
        return f"its reply's usage {problem}"
    if reply.model is not None and not isinstance(reply.model, str):
        return f"its reply's model is {type(reply.model).__name__} and not text"
    if reply.opaque is not None and not isinstance(reply.opaque, Mapping):
        return f"its reply's opaque is {type(reply.opaque).__name__} and not a mapping"
    if is_deep(reply.opaque):
        return f"its reply's opaque has more than {MAX_DEPTH} levels"
    return ""


def with_usable_details(err: ProviderError) -> ProviderError:
    """The same error, of whose details only those are left that the loop can take."""
    if err.usage is not None and _usage_problem(err.usage):
        err.usage = None
    err.partial = tuple(block for block in err.partial if not block_problem(block, _BLOCKS))
    return err


def _usage_problem(usage: Any) -> str:
    if not isinstance(usage, Usage):
        return f"is {type(usage).__name__} and not Usage"
    counts = (usage.input_tokens, usage.output_tokens, usage.cache_creation_tokens, usage.cache_read_tokens)
    if all(type(count) is int and 0 <= count < _MAX_COUNT for count in counts):
        return ""
    return f"is {usage!r:.200}, whose counts are not all integers from 0"
