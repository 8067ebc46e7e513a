"""What the user gives to ``openheim run``: the prompt, standard input, images, a schema."""

from __future__ import annotations

import errno
import math
import os
import select
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openheim._reading import read_given, read_regular
from openheim.errors import UsageError
from openheim.jsontext import parse
from openheim.messages import ImageBlock, TextBlock, image_type

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from openheim.messages import Block

__all__ = ("read_image", "read_prompt", "read_schema")

#: Bytes of standard input, and of one image, that are taken at most.
MAX_STDIN_BYTES = 64 * 1024 * 1024
MAX_IMAGE_BYTES = 20 * 1024 * 1024
MAX_SCHEMA_BYTES = 1024 * 1024

#: Seconds after which it is said that standard input is being waited for.
NOTICE_AFTER_SECS = 5.0


def read_schema(file: str) -> dict[str, Any]:
    """The JSON Schema in a file.

    Raises:
        UsageError: it cannot be read, or is no JSON object.
    """
    try:
        schema = parse(read_given(file, limit=MAX_SCHEMA_BYTES))
    except OSError as err:
        raise UsageError(f"cannot read {file}: {err.strerror}", hint="name a file that can be read") from err
    except (ValueError, RecursionError) as err:
        raise UsageError(f"{file} is no JSON: {err}", hint="--schema takes a file with a JSON Schema") from err
    if not isinstance(schema, dict):
        raise UsageError(f"{file} holds no JSON object", hint="--schema takes a file with a JSON Schema")
    return schema


def read_prompt(prompt: str | None, images: Sequence[str], *, timeout_secs: float | None = None) -> list[Block]:
    """The user's message.

    Without a prompt (or with ``-``) standard input is the prompt; with one, what stands on it is attached behind the
    prompt. Nothing is read from a terminal.

    Raises:
        UsageError: there is no prompt, or it is no text.
    """
    piped = _standard_input(required=prompt == "-", timeout_secs=timeout_secs)
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


def _standard_input(*, required: bool, timeout_secs: float | None) -> str:
    stream = sys.stdin
    if stream is None or (stream.isatty() and not required):
        return ""
    try:
        data = _read_all(stream, timeout_secs)
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


def _read_all(stream: TextIO, timeout_secs: float | None) -> bytes:
    """What stands on standard input, up to a byte more than is taken.

    Whoever started this program may have left a pipe open that nobody writes to. After some seconds that is said.
    """
    deadline = time.monotonic() + timeout_secs if timeout_secs is not None else math.inf
    notice_at = time.monotonic() + NOTICE_AFTER_SECS
    descriptor = stream.fileno()
    pieces: list[bytes] = []
    size = 0
    while size <= MAX_STDIN_BYTES:
        wait = min(deadline, notice_at) - time.monotonic()
        if not select.select([descriptor], [], [], max(wait, 0) if wait < math.inf else None)[0]:
            if time.monotonic() >= deadline:
                raise UsageError(
                    "standard input did not end within --timeout", hint="close it, for instance with </dev/null"
                )
            if time.monotonic() >= notice_at:
                print("note: waiting for standard input to end (Ctrl+D, or start with </dev/null)", file=sys.stderr)
                notice_at = math.inf
            continue
        try:
            piece = os.read(descriptor, 1_048_576)
        except BlockingIOError:
            continue
        if not piece:
            break
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


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
        data = read_regular(path, limit=MAX_IMAGE_BYTES)
    except OSError as err:
        if err.errno == errno.EFBIG:
            raise UsageError(
                f"the image {name} is larger than {MAX_IMAGE_BYTES // 2**20} MiB", hint="make it smaller first"
            ) from err
        raise UsageError(f"cannot read the image {name}: {err.strerror}", hint="check its permissions") from err
    mime_type = image_type(data)
    if mime_type is None:
        raise UsageError(f"{name} is no PNG, JPEG, GIF or WebP image", hint="convert it first")
    return ImageBlock(base64.b64encode(data).decode(), mime_type)
