"""What read_file gives for files that are no text: the image, or a refusal that says what else to do."""

from __future__ import annotations

import base64
import os
from typing import BinaryIO

from openheim import ImageBlock, TextBlock, ToolError
from openheim.messages import image_type
from openheim_tools_fs import binary
from openheim_tools_fs.encoding import Encoding, detect
from openheim_tools_fs.images import MAX_IMAGE_BYTES, MAX_IMAGE_SIDE, image_of
from openheim_tools_fs.results import printable

__all__ = ("binary_content", "text_encoding")


def text_encoding(sample: bytes) -> Encoding | None:
    """The encoding of a file that begins with ``sample``; None if it is no text.

    What might be text of an old encoding by its bytes, but begins as a known kind of file does, is that kind of file.
    """
    encoding = detect(sample)
    if encoding is not None and not encoding.mark and not encoding.is_utf8 and binary.described(sample)[0]:
        return None
    return encoding


def binary_content(
    path: str, file: BinaryIO, sample: bytes, *, takes_images: bool
) -> tuple[TextBlock | ImageBlock, ...]:
    """What the model gets.

    Args:
        path: for messages.
        file: open behind ``sample``, its first bytes.
        takes_images: whether the model can look at images.

    Raises:
        ToolError: it is no image, or none that can be shown.
    """
    size = os.fstat(file.fileno()).st_size
    kind, advice = binary.described(sample)
    what = f"{path!r} is a binary file of {size} bytes{f' ({kind})' if kind else ''}, not text"
    mime_type = image_type(sample)
    if mime_type is None:
        raise ToolError(what, hint=advice)
    if not takes_images:
        raise ToolError(
            what, hint="this model takes no images; ask the user what it shows, or use another program on it"
        )
    if size > MAX_IMAGE_BYTES:
        raise ToolError(
            f"{what}, and too large to be shown", hint=f"make a copy of at most {MAX_IMAGE_BYTES} bytes first"
        )
    data = sample + file.read(MAX_IMAGE_BYTES)
    image = image_of(data)
    if image is None or len(data) > MAX_IMAGE_BYTES:
        raise ToolError(f"{what}, and damaged or cut off", hint="check where it comes from")
    if max(image.width, image.height) > MAX_IMAGE_SIDE:
        raise ToolError(
            f"{what}, and with {image.width} x {image.height} pixels too large to be shown",
            hint=f"make a copy of at most {MAX_IMAGE_SIDE} pixels a side first",
        )
    text = f"{printable(path)}: {kind}, {image.width} x {image.height} pixels, {len(data)} bytes"
    return TextBlock(text), ImageBlock(base64.b64encode(data).decode(), mime_type)
