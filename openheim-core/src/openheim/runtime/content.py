"""What a prompt may consist of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from openheim.agent.blocks import block_problem
from openheim.messages import ImageBlock, TextBlock

if TYPE_CHECKING:
    from openheim.messages import Block

__all__ = ("prompt_blocks",)


def prompt_blocks(content: str | Sequence[Block]) -> tuple[Block, ...]:
    """The blocks of a prompt.

    Args:
        content: text, or blocks of text and images.

    Raises:
        TypeError: it is something else.
    """
    if isinstance(content, str):
        return (TextBlock(content),)
    given: object = content
    if not isinstance(given, Sequence) or isinstance(given, bytes | bytearray | memoryview):
        raise TypeError(f"a prompt is text, or a list of TextBlock and ImageBlock, not {type(given).__name__}")
    blocks = tuple(given)
    for block in blocks:
        if problem := block_problem(block, (TextBlock, ImageBlock)):
            raise TypeError(f"the prompt holds {problem}")
    return blocks
