"""Images that models take: which kind a file is, how large, and whether it is all there.

A service refuses a request that holds an image it cannot read, and every later request of the session with it; so what
is looked at here is what services look at.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from openheim.messages import image_type

__all__ = ("MAX_IMAGE_BYTES", "MAX_IMAGE_SIDE", "Image", "image_of")

#: In base64 this is just below the 5 MB that services take.
MAX_IMAGE_BYTES = 3 * 1024 * 1024 + 512 * 1024
#: Pixels; services refuse more.
MAX_IMAGE_SIDE = 8000


@dataclass(slots=True, frozen=True)
class Image:
    """A whole image; sizes in pixels."""

    mime_type: str
    width: int
    height: int


def image_of(data: bytes) -> Image | None:
    """What a file holds, or None if it is no image of these kinds, is cut off, or does not tell its size."""
    mime_type = image_type(data)
    try:
        match mime_type:
            case "image/png":
                size = _png_size(data)
            case "image/jpeg":
                size = _jpeg_size(data)
            case "image/gif":
                size = struct.unpack_from("<HH", data, 6) if data.rstrip(b"\0").endswith(b";") else None
            case "image/webp":
                size = _webp_size(data)
            case _:
                return None
    except (struct.error, IndexError):
        return None
    if mime_type is None or size is None or min(size) < 1:
        return None
    return Image(mime_type, *size)


def _png_size(data: bytes) -> tuple[int, int] | None:
    # Behind the name of the last chunk stands its checksum. More may follow, which readers pass over.
    end = data.rfind(b"IEND", -4096)
    if data[12:16] != b"IHDR" or not 0 <= end <= len(data) - 8:
        return None
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    """From the frame header, which stands behind segments that each tell their length (ITU T.81, annex B)."""
    if b"\xff\xd9" not in data[-4096:]:
        return None
    place = 2
    while data[place] == 0xFF:
        marker = data[place + 1]
        if marker == 0xFF:  # Filling.
            place += 1
            continue
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, place + 5)
            return width, height
        if marker in (0xD9, 0xDA):
            return None
        alone = marker == 0x01 or 0xD0 <= marker <= 0xD8
        place += 2 if alone else 2 + int.from_bytes(data[place + 2 : place + 4], "big")
    return None


def _webp_size(data: bytes) -> tuple[int, int] | None:
    """From the first chunk: lossy, lossless or extended (RFC 9649)."""
    if len(data) < 8 + int.from_bytes(data[4:8], "little"):
        return None
    match data[12:16]:
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", data, 21)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    return None
