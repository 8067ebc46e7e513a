"""What a tool answered, made into what the model is shown: odd answers and failures become errors that it can read."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import Any

from openheim.agent.blocks import block_problem
from openheim.agent.cancellation import slip_in_words
from openheim.agent.results import cut_text
from openheim.errors import ToolError, described, said, unwrapped
from openheim.messages import ImageBlock, TextBlock
from openheim.tools import ToolResult

__all__ = ("Answer", "answer_of", "failure_of")

_log = logging.getLogger(__name__)

#: Base64 characters of one image, and characters of JSON of one display, beyond which they are left out of a result.
MAX_IMAGE_CHARACTERS = 16 * 1024 * 1024
MAX_DISPLAY_CHARACTERS = 1024 * 1024

#: Bytes of what an exception says.
_MAX_FAILURE_BYTES = 4096


@dataclass(slots=True, frozen=True)
class Answer:
    """What becomes of a tool's answer; ``display`` is for surfaces only."""

    text: str
    images: tuple[ImageBlock, ...] = ()
    display: dict[str, Any] | None = None


def answer_of(name: str, result: Any) -> Answer:
    """Takes what a tool returned.

    Args:
        name: the tool's.

    Raises:
        ToolError: it is nothing that a tool may return.
    """
    if isinstance(result, str):
        return Answer(result)
    if not isinstance(result, ToolResult):
        raise ToolError(f"the tool {name!r} returned {type(result).__name__}, which is neither text nor a ToolResult")
    content: Any = result.content
    if not isinstance(content, tuple | list):
        kind = type(content).__name__
        raise ToolError(f"the tool {name!r} returned a ToolResult whose content is {kind} and not a tuple of blocks")
    for block in content:
        if problem := block_problem(block, (TextBlock, ImageBlock)):
            raise ToolError(f"the tool {name!r} returned a ToolResult that holds {problem}")
    text = "".join(block.text for block in content if isinstance(block, TextBlock))
    images = tuple(block for block in content if isinstance(block, ImageBlock))
    kept = tuple(image for image in images if len(image.data) <= MAX_IMAGE_CHARACTERS)
    if len(kept) < len(images):
        text += f"\n[{len(images) - len(kept)} images left out: larger than {MAX_IMAGE_CHARACTERS // 2**20} MiB]"
    return Answer(text, kept, _display(name, result))


def failure_of(name: str, err: BaseException) -> str:
    """What the model is told of a tool that raised instead of answering."""
    if not isinstance(err, Exception):
        return cut_text(f"the tool {name!r} {slip_in_words(err)}", _MAX_FAILURE_BYTES)
    err = unwrapped(err)
    if isinstance(err, ToolError):
        return said(err) or f"the tool {name!r} failed without saying why"
    _log.debug("a tool failed", exc_info=err)
    text = described(err)
    # Some exceptions say nothing, and the name of a class alone is little to go by.
    return cut_text(text if said(err) else f"the tool {name!r} failed: {text}", _MAX_FAILURE_BYTES)


def _display(name: str, result: ToolResult) -> dict[str, Any] | None:
    """What surfaces are shown: only what is JSON, and not too much of it."""
    if result.display is None:
        return None
    try:
        display = dict(result.display)
        size = len(json.dumps(display, allow_nan=False))
    except Exception as err:  # a stranger's mapping may raise anything
        _log.warning("the display of tool %r is left out, since it is no JSON: %s", name, described(err))
        return None
    return display if size <= MAX_DISPLAY_CHARACTERS else None
