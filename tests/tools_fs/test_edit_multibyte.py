r"""edit_file in encodings where a character may end in the byte of an ASCII one: ``ソ`` in ``\`` in Shift_JIS."""

from __future__ import annotations

import tempfile
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openheim import ToolError
from openheim.testing import FakeTurn
from tests.tools_fs.calls import call

pytestmark = pytest.mark.anyio

#: Characters of each, among them such as end in ASCII bytes.
LETTERS = {
    "shift_jis": "アイソ表能日本語予ﾃｱ、",
    "cp932": "アイソ表能①ﾃ",
    "gbk": "中国誠镕乗俓汉字。",
    "gb18030": "中国誠镕㐀㐁€ÿ",
    "big5": "中文測試功許蓋。",
    "cp949": "한국어똠펲똑갂",
    "johab": "한국어똠펲시콜라",
    "euc_jp": "日本語ソ丂ｱ",
    "euc_kr": "한국어가",
    "gb2312": "中国汉字",
    "iso2022_jp": "日本語ソ表",
}


async def refused(work: Path, turn: FakeTurn, data: bytes, old: str, new: str, **more: bool) -> ToolError:
    (work / "x").write_bytes(data)
    with pytest.raises(ToolError) as caught:
        await call(turn, "edit_file", path="x", old_string=old, new_string=new, **more)
    assert (work / "x").read_bytes() == data
    return caught.value


async def edited(work: Path, turn: FakeTurn, data: bytes, old: str, new: str, **more: bool) -> bytes:
    (work / "x").write_bytes(data)
    await call(turn, "edit_file", path="x", old_string=old, new_string=new, **more)
    return (work / "x").read_bytes()


@pytest.mark.parametrize(
    ("codec", "text", "old"),
    [
        ("shift_jis", "パス = ソース\n", "\\"),  # ソ is 83 5c
        ("shift_jis", "アイウ テスト\n", "A"),  # ア is 83 41
        ("shift_jis", "機能: A\n", "\\: A"),  # 能 is 94 5c
        ("shift_jis", "# 予約\nx = 1\n", "\\"),  # 予 is 97 5c
        ("gbk", '名 = "誠"\n', "\\"),  # 誠 is d5 5c
        ("gbk", '名 = "朱镕基"\n', "F"),  # 镕 is e9 46
        ("gb18030", "㐀 = 2\n", "0"),  # 㐀 is 81 39 ee 39
        ("big5", "許功蓋\n", "\\"),  # 功 is a5 5c
        ("cp949", "똠방각하\n", "c"),  # 똠 is 8c 63
        ("johab", "한국어 시험\n", "a"),
        ("iso2022_jp", "x = 日本語\n", "F"),  # 日 is 46 7c
    ],
)
async def test_half_a_character_is_never_replaced(work: Path, turn: FakeTurn, codec: str, text: str, old: str) -> None:
    data = text.encode(codec)
    assert old not in text
    if old.encode() not in data:
        old = chr(next(byte for byte in data if byte in range(0x30, 0x7F) and chr(byte) not in text))
    error = await refused(work, turn, data, old, "Z", replace_all=True)
    assert "an end of old_string in line 1 is inside of a character" in str(error)
    assert error.hint is not None
    assert "iconv" in error.hint


@pytest.mark.parametrize(
    ("codec", "text", "old", "new"),
    [
        ("shift_jis", "アイウ\nname = 1  # 表示\n", "name = 1", "name = 2"),
        ("shift_jis", "機能 A テスト\n", " A ", " BC "),
        ("shift_jis", "機能:A。テスト\n", "A", "B"),
        ("shift_jis", "日本語A\n", "A", "B"),
        ("gbk", '中文 = "A"\n', '"A"', '"B"'),
        ("gb18030", "㐀 = 10 # 中\n", "10", "20"),
        ("big5", "許功蓋 A\n", "A", ""),
        ("euc_jp", "日本語 A\n", "A", "B"),
        ("euc_kr", "x = 한국어\n", "x =", "y ="),
        ("iso2022_jp", "x = 日本語\ny = F\n", "y = F", "y = G"),
    ],
)
async def test_ascii_between_characters_is(
    work: Path, turn: FakeTurn, codec: str, text: str, old: str, new: str
) -> None:
    assert (await edited(work, turn, text.encode(codec), old, new)).decode(codec) == text.replace(old, new)


async def test_what_read_file_shows_can_be_given_back(work: Path, turn: FakeTurn) -> None:
    """The text is not what it should be, but its bytes are."""
    data = "# 中国\nx = 1\n".encode("gbk")
    (work / "x").write_bytes(data)
    shown = (await call(turn, "read_file", path="x")).splitlines()[0]
    assert shown == "# ÖÐ¹ú"
    assert await edited(work, turn, data, f"{shown}\nx = 1", f"{shown}\nx = 2") == data.replace(b"1", b"2")
    # One character of it, and half of one.
    assert await edited(work, turn, data, "ÖÐ", "") == "# 国\nx = 1\n".encode("gbk")
    assert "inside of a character" in str(await refused(work, turn, data, "Ð", ""))


async def test_other_characters_are_not_added_where_the_encoding_is_not_known(work: Path, turn: FakeTurn) -> None:
    data = "# 中国\nx = 1\n".encode("gbk")
    error = await refused(work, turn, data, "x = 1", "x = 'é'")
    assert "what new_string has besides ASCII would be wrong" in str(error)
    await refused(work, turn, data, "x = 1", "x = 'Ö'")
    await refused(work, turn, "x = 日本\n".encode("iso2022_jp"), "x", "é")


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("café au lait\n", "au lait", "crème"),
        ("café au lait\n", "caf", "th"),
        ("café\n", "\n", "s\n"),
        ("naïve\n", "naïve", "Ünö"),
        ("grün und naïv", "und", "oder"),
        ("Straße, Äcker, süß, grün, für, Fuß, hübsch, schön, Bär, Tür", "cker", "st"),
        ("¿Qué tal? señor\n", "se", "Se"),
        ("±5 °C\n", "5", "6"),
    ],
)
async def test_western_text_is_edited(work: Path, turn: FakeTurn, text: str, old: str, new: str) -> None:
    data = text.encode("latin-1")
    assert await edited(work, turn, data, old, new) == text.replace(old, new).encode("latin-1")


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", ["中文A\n第二行 N。\n", "日本語\u3000A\r\n表N\r\n", "Ждём N\nни A\n"])
async def test_utf16_of_any_script_without_a_mark(work: Path, turn: FakeTurn, codec: str, text: str) -> None:
    """``N`` is half of ``中`` there."""
    data = text.encode(codec)
    assert (await edited(work, turn, data, "N", "Xyz")).decode(codec) == text.replace("N", "Xyz")
    assert (await call(turn, "read_file", path="x")).startswith(text.replace("N", "Xyz").splitlines()[0])


async def test_what_may_be_utf16_in_both_orders(work: Path, turn: FakeTurn) -> None:
    assert "may be UTF-16" in str(await refused(work, turn, "中A".encode("utf-16-le"), "N", "X"))


async def test_western_text_that_could_be_something_else(work: Path, turn: FakeTurn) -> None:
    """In one word nothing tells: ``ïv`` is a character of GBK."""
    assert "Shift_JIS" in str(await refused(work, turn, "naïve\n".encode("latin-1"), "ve", "f"))
    # A place where no encoding of several bytes has one tells.
    data = "naïve, café\n".encode("latin-1")
    assert await edited(work, turn, data, "ve", "f") == b"na\xeff, caf\xe9\n"


def possible(codec: str) -> st.SearchStrategy[str]:
    return st.text(LETTERS[codec] * 2 + "AFRc\\0|{} \n", max_size=30)


@pytest.mark.slow
@pytest.mark.parametrize("codec", sorted(LETTERS))
def test_edits_in_the_true_encoding(codec: str, long_counts: bool) -> None:
    """Whatever is accepted is what would have come of it if the encoding had been known."""
    accepted = 0
    with tempfile.TemporaryDirectory() as folder:
        work, turn = Path(folder), FakeTurn(Path(folder))

        @given(st.data())
        @settings(max_examples=2000 if long_counts else 40)
        def check(draw: st.DataObject) -> None:
            nonlocal accepted
            # What tells may come behind the part that is looked at first.
            text = draw.draw(st.sampled_from(["", "", "", "x = 1\n" * 12_000]), "beginning")
            before = len(text.encode(codec))
            text += draw.draw(possible(codec), "text")
            data = text.encode(codec)
            if is_utf8(data) and not data.isascii():
                return  # And taken for that.
            if len(data) > before and draw.draw(st.booleans(), "a piece of the file"):
                begin = draw.draw(st.integers(before, len(data) - 1))
                piece = data[begin : begin + draw.draw(st.integers(1, 6))]
            else:
                piece = draw.draw(st.text("AFRc\\0|{} \n", min_size=1, max_size=3), "old").encode()
            new = draw.draw(st.text("xyz\\A ", max_size=3), "new")
            try:
                changed = anyio.run(edit_all, work, turn, data, shown(data, piece), new)
            except ToolError:
                assert (work / "x").read_bytes() == data
                return
            accepted += 1
            after = text.replace(piece.decode(codec), new)
            # Escape sequences may be there that say nothing new.
            assert changed == after.encode(codec) or (changed.isascii() and changed.decode(codec) == after)

        check()
    assert accepted > 0


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def shown(data: bytes, piece: bytes) -> str:
    """What read_file makes of a piece of the file."""
    try:
        data.decode("cp1252")
    except UnicodeDecodeError:
        return piece.decode("latin-1")
    return piece.decode("cp1252")


async def edit_all(work: Path, turn: FakeTurn, data: bytes, old: str, new: str) -> bytes:
    return await edited(work, turn, data, old, new, replace_all=True)


async def test_a_long_file_is_checked_in_reasonable_time(work: Path, turn: FakeTurn) -> None:
    data = ("日本語のテキスト、能" * 50_000 + " A\n").encode("shift_jis")
    with anyio.fail_after(30):
        assert await edited(work, turn, data, " A", " B") == data.replace(b" A", b" B")
        await refused(work, turn, data, "\\", "/", replace_all=True)
