"""Web pages as text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openheim_tools_web import html_text
from openheim_tools_web.html_text import readable_page


def text_of(source: str) -> str:
    return readable_page(source, "https://page.test/a/b").text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("a  b\n\tc", "a b c"),
        ("<p>a</p><p>b</p>", "a\n\nb"),
        ("<p>a<p>b", "a\n\nb"),
        ("<div>a</div><div>b</div>c<br>d<hr>e", "a\nb\nc\nd\n---\ne"),
        ("<b>a</b><i>b</i> <b> c</b>", "ab c"),
        ("<h1>a</h1>b<h3>c <i>d</i></h3>e", "# a\n\nb\n\n### c d\n\ne"),
        ("<h2></h2>a", "a"),
        ("<div><div><div>a</div></div></div>\n\n<div></div><p></p>b", "a\n\nb"),
        # lists
        ("<ul><li>a<li>b</ul>c", "- a\n- b\n\nc"),
        ("<ul><li><p>a</p><p>b</p></li><li><a href=/x>c</a></li></ul>", "- a\n\nb\n\n- [c](https://page.test/x)"),
        ("<ol><li>a<li>b</ol><ol start=5><li>c<li value=9>d<li>e</ol>", "1. a\n2. b\n\n5. c\n9. d\n10. e"),
        ("<ul><li>a<ol><li>b<ul><li>c</ul></ol><li>d</ul>", "- a\n  1. b\n    - c\n- d"),
        ("<li>a<li>b", "- a\n- b"),
        ("<ul><li></li><li>a</ul>b", "- a\n\nb"),
        ("<dl><dt>a<dd>b<dd>c<dt>d</dl>", "a\n  b\n  c\nd"),
        # links
        ("<a href='x?y&amp;z'>a  b</a>.", "[a b](https://page.test/a/x?y&z)."),
        ("x<a href=//e.test> a </a>y", "x [a](https://e.test) y"),
        ("<a href=/x>a</a> <a href=/x>b</a>", "[a](https://page.test/x) b"),
        ("<a href=#x>a</a> <a name=y>b</a> <a href='javascript:x()'>c</a> <a href='data:,x'>d</a>", "a b c d"),
        ("<a href=mailto:a@b.test>m</a> <a href='http://[bad'>n</a>", "[m](mailto:a@b.test) [n](http://[bad)"),
        ("<a href=/x><img alt='a cat'></a> <a href=/y><img></a>z", "[[image: a cat]](https://page.test/x) z"),
        ("<a href=/x><div>a</div><div>b</div></a>c", "[a b](https://page.test/x) c"),
        ("<a href=/x><h2>a</h2></a>b", "## [a](https://page.test/x)\n\nb"),
        ("<a href=/x>a<a href=/y>b</a>", "[a](https://page.test/x)[b](https://page.test/y)"),
        ("<base href='//o.test/d/'><a href=x>a</a>", "[a](https://o.test/d/x)"),
        ("<a href=/x>a" + "b" * 600 + "<p>c", "a" + "b" * 600 + "\n\nc"),
        # tables
        ("<table><tr><th>a<th>b<tr><td>c<td></table>d", "| a | b |\n| c |  |\n\nd"),
        ("<table><tbody><tr><td><p>a</p></td> <td><div>b</div></td></tr></table>", "| a | b |"),
        ("<table><tr><td>a<table><tr><td>b</table>c</table>", "| a\n\n| b |\n\nc |"),
        ("<td>a<td>b", "a\nb"),
        # code
        ("a <code>b  c</code>.", "a `b c`."),
        ("<pre>\n  a\n\n\n b\t<b>c</b> &lt;</pre>d", "```\n  a\n\n\n b\tc <\n```\n\nd"),
        ("<pre><code>a\nb\n</code></pre><pre>c<br>d</pre>", "```\na\nb\n```\n\n```\nc\nd\n```"),
        ("<pre><div>a</div><div>b</div></pre>", "```\na\nb\n```"),
        # entities
        ("&amp;&lt;&eacute;&#233;&#xe9;&copy &nope; &#0;", "&<ééé© &nope; \ufffd"),
        (f"&#{'9' * 5000};&#x{'f' * 5000};x", "\ufffd\ufffdx"),
        # not for reading
        ("a<script>b</script><style>c</style><noscript>d</noscript>e", "ae"),
        ("a<script>if (x<y) '</p>' <!-- </script>b", "ab"),
        ("a<script>b", "a"),
        ("a<!-- <p>b --><!-->c<!--->d<!-- x --!>e<!-- f", "acde"),
        ("a<svg><title>t</title><text>b</text></svg><svg/><math><mi>x</math>c<template><p>d</template>", "ac"),
        ("a<p hidden>b<p>c<div aria-hidden=true>d<div>e</div>f</div><i style='color:red; DISPLAY: none'>g</i>h", None),
        ("a<ul><li hidden>b<li>c</ul><table><tr hidden><td>d<tr><td>e</table>", "a\n\n- c\n\n| e |"),
        ("<section><div hidden>a</section>b", "b"),
        ("<body style='display:none'>a", "a"),
        ("<select><option>a</select><textarea><p>b</textarea><iframe>c</iframe>d", "d"),
        # odd markup
        ("a < b <3 </> <?x?> <!x> </ x>c", "a < b <3 c"),
        ("a<b x='>'>c</b y='>'>d", "acd"),
        ('a<b x=">c', "a"),
        ("a<br/><BR />b", "a\nb"),
        ("a<plaintext><b>c", "a<b>c"),
        ("</p></li></ul></table></pre></a></code>a", "`a"),
        ("\ufeffa\0b", "\ufeffa\0b"),
    ],
)
def test_how_pages_read(source: str, text: str | None) -> None:
    assert text_of(source) == (text if text is not None else "a\n\nc\nh")


def test_titles() -> None:
    for source in ("<title> a\n &amp; b</title><title>c</title>x", "<svg><title>n</title></svg><title>a & b</title>x"):
        page = readable_page(source, "https://page.test/")
        assert (page.title, page.text) == ("a & b", "x")


LONG = "words " * 50


@pytest.mark.parametrize(
    ("source", "part"),
    [
        (f"<nav>menu</nav><main>{LONG}</main><footer>end</footer>", "main"),
        (f"<nav>menu</nav><main><article>{LONG}</article><article>x</article></main>", "main"),
        (f"<nav>menu</nav><article><article>{LONG}</article></article>end", "article"),
        (f"<article>{LONG}</article><article>{LONG}</article>menu", ""),
        (f"<main>short</main>menu {LONG}", ""),
        (f"<main>{LONG}</main>menu {LONG * 20}", ""),
        (f"<article>{LONG}</article>menu {LONG * 2}", ""),
        (f"<main>{LONG}</main>", ""),
        (f"<p>menu {LONG}</p><main>{LONG}", "main"),
    ],
)
def test_the_main_part(source: str, part: str) -> None:
    page = readable_page(source, "https://page.test/")
    assert page.part == part
    assert ("menu" in page.text) is (not part and "menu" in source)


def test_a_small_page_cannot_become_a_large_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_text, "MAX_TEXT_CHARS", 10_000)
    source = f"<base href='//x.test/{'a' * 900}/'>" + "".join(f"<a href={number}>x</a>" for number in range(1000))
    page = readable_page(source, "https://page.test/")
    assert page.is_cut
    assert len(page.text) < 12_000


SIZE = 256 * 1024


@pytest.mark.parametrize(
    "piece",
    [
        *"< </ <! <!-- <!--- & &# &#x <a <a/ <a= <a' <a\" <a='".split(" "),
        *"<div> <p> <b> <a> <ul><li> <table><tr><td> <table> <pre> <svg> <template> <select> <title> <script>".split(
            " "
        ),
        "<p><b a=%d><i>",
        "<a href=%d>x",
        "<p hidden><x%d>",
        "<div hidden></p>",
        "<x a%d=1 ",
        "</div></p></b>",
        "<!-- --",
        "<script></scrip",
        "<a href=/>" + "x" * 100,
        "<main><article>",
        "\n",
        " ",
        "<table><a><table>",
    ],
)
def test_no_page_takes_long(piece: str) -> None:
    """Time grows with the length of a page and not with its square, which would be minutes."""
    count = SIZE // len(piece)
    source = "".join(piece.replace("%d", str(number)) for number in range(count))
    before = time.monotonic()
    page = readable_page(source, "https://page.test/")
    assert time.monotonic() - before < 10
    assert len(page.text) < 8 * SIZE


def test_very_deep_pages() -> None:
    for name in ("div", "span", "ul><li", "table><tr><td", "blockquote", "b", "main"):
        opened = f"<{name}>" * 100_000
        assert readable_page(f"{opened}deep", "https://page.test/").text.endswith("deep")


MARKUP = st.lists(
    st.one_of(
        st.sampled_from(
            "<p> </p> <ul> <ol> <li> </ul> <table> <tr> <td> </td> </table> <pre> </pre> <a href=/x> </a> <code>"
            " </code> <h1> </h1> <div hidden> </div> <p hidden> <svg> </svg> <script> </script> <main> </main> <br>"
            " <img alt=x> <!-- --> <title> </title> <dd> <base href=y> & &lt; &#120; < > \" ' = /".split(" ")
        ),
        st.text(max_size=10),
    ),
    max_size=40,
).map("".join)


@given(MARKUP)
def test_any_markup_gives_text(source: str) -> None:
    page = readable_page(source, "https://page.test/")
    assert len(page.text) <= 50 * len(source) + 10
    if "<pre" not in source and "plaintext" not in source:
        assert "\n\n\n" not in page.text


@given(st.text("abc &<>\n\u00e9", max_size=200))
def test_text_comes_through(text: str) -> None:
    import html

    assert text_of(f"<p>{html.escape(text)}</p>") == " ".join(text.split())
