"""Which characters the bytes of a page stand for: what its mark, its headers or the page itself say, else a guess.

The order and the meaning of names follow the WHATWG Encoding Standard, as browsers do.
"""

from __future__ import annotations

import codecs
import re

__all__ = ("decoded",)

#: How far into a page its own word on the matter is looked for.
_PRESCAN_BYTES = 4096

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_META = re.compile(rb"""<meta[\s/][^>]{0,500}?charset\s{0,20}=[\s"']{0,20}([\w.:+-]{1,40})""", re.IGNORECASE)
_DECLARATION = re.compile(rb"""<\?xml\s[^>]{0,200}?encoding\s{0,20}=\s{0,20}["']([\w.:+-]{1,40})["']""")
_PARAMETER = re.compile(r""";\s*charset\s*=\s*["']?\s*([^\s;"']+)""", re.IGNORECASE)

#: Names that mean something else on the web than in Python.
_ON_THE_WEB = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "utf-16": "utf-16-le",
}
_ALIASES = {"x-sjis": "cp932", "x-gbk": "gb18030", "x-euc-jp": "euc_jp", "x-cp1251": "cp1251", "x-cp1252": "cp1252"}

#: Codecs of Python that turn bytes into text and nothing else. (Others unpack archives, or read UTF-7.)
_ALLOWED = frozenset(
    (
        "utf-8 utf-16-le utf-16-be gb18030 big5hkscs euc_jp iso2022_jp cp932 cp949 cp866 cp874 koi8-r koi8-u mac-roman"
        " mac-cyrillic cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 iso8859-2 iso8859-3 iso8859-4"
        " iso8859-5 iso8859-6 iso8859-7 iso8859-8 iso8859-10 iso8859-13 iso8859-14 iso8859-15 iso8859-16"
    ).split()
)


def decoded(body: bytes | bytearray, content_type: str, *, markup: bool) -> str:
    """The text of a page. Bytes that stand for nothing become U+FFFD.

    Args:
        content_type: the header.
        markup: whether the page may say itself what it is written in, as HTML and XML do.
    """
    for mark, codec in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(codec, errors="replace")
    parameter = _PARAMETER.search(content_type)
    told = _codec(parameter[1]) if parameter else None
    if told is None and markup:
        told = _declared(bytes(body[:_PRESCAN_BYTES]))
    return body.decode(told or _guess(body), errors="replace")


def _codec(label: str) -> str | None:
    """The codec that a name on the web means; None for a name that nobody knows."""
    label = label.strip().lower()
    if not re.fullmatch(r"[a-z0-9_.:+-]{1,40}", label):
        return None
    try:
        name = _ALIASES.get(label) or codecs.lookup(label).name
    except (LookupError, ValueError):
        return None
    name = _ON_THE_WEB.get(name, name)
    return name if name in _ALLOWED else None


def _declared(start: bytes) -> str | None:
    if start.startswith(b"<\0?\0"):
        return "utf-16-le"
    if start.startswith(b"\0<\0?"):
        return "utf-16-be"
    found = _DECLARATION.match(start.lstrip()) or _META.search(_COMMENT.sub(b"", start))
    codec = _codec(found[1].decode("ascii")) if found else None
    # It was read as ASCII, so it cannot be what it says.
    return "utf-8" if codec in ("utf-16-le", "utf-16-be") else codec


def _guess(body: bytes | bytearray) -> str:
    try:
        text, read = codecs.utf_8_decode(body, "strict", False)
    except UnicodeDecodeError:
        return "cp1252"
    # A character cut by the end of what was read is no fault, if there are whole ones before it.
    return "cp1252" if read < len(body) and text.isascii() else "utf-8"
