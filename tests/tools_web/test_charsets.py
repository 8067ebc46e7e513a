"""Which characters the bytes of a page stand for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openheim_tools_web.charsets import decoded


@pytest.mark.parametrize(
    ("header", "body", "text"),
    [
        ("; charset=utf-8", "é".encode(), "é"),
        ('; charset="UTF8"', "é".encode(), "é"),
        ("; x=y; Charset='windows-1251'", "Ж".encode("cp1251"), "Ж"),
        ("; charset=iso-8859-1", b"\x80", "€"),
        ("; charset=latin1", b"\x93", "\u201c"),
        ("; charset=us-ascii", b"\x80", "€"),
        ("; charset=shift_jis", "漢①".encode("cp932"), "漢①"),
        ("; charset=x-sjis", "漢".encode("cp932"), "漢"),
        ("; charset=euc-jp", "漢".encode("euc-jp"), "漢"),
        ("; charset=gb2312", "€漢".encode("gb18030"), "€漢"),
        ("; charset=big5", "漢".encode("big5"), "漢"),
        ("; charset=ks_c_5601-1987", "한".encode("cp949"), "한"),
        ("; charset=koi8-r", "Ж".encode("koi8-r"), "Ж"),
        ("; charset=utf-16", "é".encode("utf-16-le"), "é"),
        ("; charset=utf-16be", "é".encode("utf-16-be"), "é"),
        # A mark says it best.
        ("; charset=windows-1252", b"\xef\xbb\xbf\xc3\xa9", "é"),
        ("", "é".encode("utf-16"), "é"),
        ("; charset=utf-8", b"\xfe\xff\x00\xe9", "é"),
        # The page itself.
        ("", b"<meta charset=windows-1251>\xc6", "<meta charset=windows-1251>Ж"),
        ("", b"<META content='text/html; Charset=koi8-r' http-equiv=x>\xf6", None),
        ("", b'<?xml version="1.0" encoding="iso-8859-2"?>\xb9', '<?xml version="1.0" encoding="iso-8859-2"?>š'),
        ("; charset=nonsense", b"<meta charset='windows-1251'>\xc6", "<meta charset='windows-1251'>Ж"),
        ("", b"<!-- <meta charset=koi8-r> --><meta charset=windows-1251>\xc6", None),
        ("", "<meta charset=utf-16>é".encode(), "<meta charset=utf-16>é"),
        ("", "<?xml version='1.0'?>é".encode("utf-16-le"), "<?xml version='1.0'?>é"),
        ("", "<?xml version='1.0'?>é".encode("utf-16-be"), "<?xml version='1.0'?>é"),
        # Nobody says.
        ("", "é".encode(), "é"),
        ("", "éé".encode()[:3], "é\ufffd"),
        ("", b"caf\xe9", "café"),
        ("", b"caf\xe9 ", "café "),
        ("", b"\x81\xe9 ", "\ufffdé "),
        # Names of what is no encoding of text, or none for the web.
        *[(f"; charset={name}", "é".encode(), "é") for name in ("zlib", "rot13", "hex", "utf-7", "idna", "../x", "é")],
    ],
)
def test_what_pages_are_written_in(header: str, body: bytes, text: str | None) -> None:
    result = decoded(body, f"text/html{header}", markup=True)
    assert result == text if text is not None else result.endswith("Ж")


def test_plain_text_does_not_speak_of_itself() -> None:
    assert decoded(b"<meta charset=koi8-r>\xe9", "text/plain", markup=False).endswith("é")


@given(st.binary(), st.text(), st.booleans())
def test_nothing_is_too_odd(body: bytes, name: str, markup: bool) -> None:
    decoded(body, f"text/html; charset={name}", markup=markup)
