"""Images in the form that both wires take, and words for those that they refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openheim import ImageBlock

__all__ = ("SHOWN_BEFORE", "data_url", "in_words")

#: Stands for an image in what the assistant said, where there is no place for one.
SHOWN_BEFORE = "[An image was shown here.]"

_TYPES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))


def data_url(image: ImageBlock) -> str | None:
    """The image as an address, or None if it is of a type that is refused, empty, or no base64."""
    import binascii

    mime_type = _type_of(image)
    data = "".join(image.data.split())
    try:
        is_sendable = mime_type in _TYPES and bool(binascii.a2b_base64(data, strict_mode=True))
    except ValueError:
        is_sendable = False
    return f"data:{mime_type};base64,{data}" if is_sendable else None


def in_words(image: ImageBlock) -> str:
    """What stands for an image that is refused."""
    return f"[An image of type {_type_of(image) or 'unknown'} cannot be shown to this model.]"


def _type_of(image: ImageBlock) -> str:
    mime_type = image.mime_type.strip().lower()
    return "image/jpeg" if mime_type == "image/jpg" else mime_type
