"""What the user gives to ``openheim run``: the prompt, standard input, images."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from openheim.errors import UsageError
from openheim.messages import ImageBlock, TextBlock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openheim.messages import Block

__all__ = ("prompt_blocks", "read_image")

#: Bytes of standard input, and of one image, that are taken at most.
MAX_STDIN_BYTES = 64 * 1024 * 1024
MAX_IMAGE_BYTES = 20 * 1024 * 1024

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def prompt_blocks(prompt: str | None, images: Sequence[str]) -> list[Block]:
    """The user's message.

    Without a prompt (or with ``-``) standard input is the prompt; with one, what stands on it is attached behind the
    prompt. Nothing is read from a terminal.

    Raises:
        UsageError: there is no prompt, or it is no text.
    """
    piped = _standard_input(required=prompt == "-")
    if prompt is None or prompt == "-":
        text = piped
    else:
        try:
            prompt.encode()
        except UnicodeEncodeError as err:
            raise UsageError(
                "the prompt is not UTF-8", hint="check the terminal's locale, or give the prompt on standard input"
            ) from err
        text = f"{prompt}\n\n[standard input]\n{piped}" if piped.strip() else prompt
    if not text.strip():
        raise UsageError("there is no prompt", hint='give one: openheim run "what is in this directory?"')
    return [TextBlock(text), *map(read_image, images)]


def _standard_input(*, required: bool) -> str:
    stream = sys.stdin
    if stream is None or (stream.isatty() and not required):
        return ""
    try:
        data = stream.buffer.read(MAX_STDIN_BYTES + 1)
    except OSError as err:
        if required:
            raise UsageError(f"cannot read standard input: {err.strerror}", hint="give the prompt as argument") from err
        return ""
    if len(data) > MAX_STDIN_BYTES:
        raise UsageError(
            f"standard input is longer than {MAX_STDIN_BYTES // 2**20} MiB", hint="name the file in the prompt instead"
        )
    if (position := data.find(b"\0")) >= 0:
        raise UsageError(
            f"standard input is no text: there is a NUL byte at offset {position}",
            hint="give text, or name the file in the prompt",
        )
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as err:
        raise UsageError(
            f"standard input is not UTF-8: byte 0x{data[err.start]:02x} at offset {err.start}",
            hint="convert it first, for instance with iconv -f latin1 -t utf-8",
        ) from err


def read_image(name: str) -> ImageBlock:
    """An image file (PNG, JPEG, GIF or WebP) as a block.

    Raises:
        UsageError: it cannot be read, is too large, or is no such image.
    """
    import base64

    path = Path(name)
    try:
        if not path.is_file():
            raise UsageError(f"there is no image file {name}", hint="check the path")
        if path.stat().st_size > MAX_IMAGE_BYTES:
            raise UsageError(
                f"the image {name} is larger than {MAX_IMAGE_BYTES // 2**20} MiB", hint="make it smaller first"
            )
        data = path.read_bytes()
    except OSError as err:
        raise UsageError(f"cannot read the image {name}: {err.strerror}", hint="check its permissions") from err
    mime_type = next((kind for signature, kind in _SIGNATURES if data.startswith(signature)), None)
    if mime_type is None and data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        mime_type = "image/webp"
    if mime_type is None:
        raise UsageError(f"{name} is no PNG, JPEG, GIF or WebP image", hint="convert it first")
    return ImageBlock(base64.b64encode(data).decode(), mime_type)
