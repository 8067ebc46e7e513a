"""One spelling for each address: what rules match on, and what is sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from openheim import ToolError
from openheim.permissions.rules import parse_rule
from openheim.testing import FakeTurn
from openheim.tools import tool_target
from openheim_tools_web.plugin import openheim_tools
from openheim_tools_web.urls import parse_url
from openheim_tools_web.web_fetch import WebFetch


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("HTTP://Example.TEST", "http://example.test/"),
        ("https://example.test.:443/", "https://example.test/"),
        ("http://example.test:/a", "http://example.test/a"),
        ("http://example.test:443/", "http://example.test:443/"),
        (" https://example.test/x#part\n", "https://example.test/x"),
        ("http://example.test?q=1", "http://example.test/?q=1"),
        ("http://example.test/a/../b/./c/%2e%2E/d", "http://example.test/b/d"),
        ("http://example.test/../../x", "http://example.test/x"),
        ("http://example.test/a/..", "http://example.test/"),
        ("http://example.test/a/b/..", "http://example.test/a/"),
        ("http://example.test/%61%2f%7e%zz", "http://example.test/a%2F~%25zz"),
        ("http://example.test/é?ü=%c3%bc", "http://example.test/%C3%A9?%C3%BC=%C3%BC"),
        ("http://example.test/a//b", "http://example.test/a//b"),
        ("http://[2606:2800:0:0::1]:81/", "http://[2606:2800::1]:81/"),
        ("http://bücher.test/", "http://xn--bcher-kva.test/"),
        ("http://example.test/x?y=/../z", "http://example.test/x?y=/../z"),
    ],
)
def test_canonical_spelling(given: str, canonical: str) -> None:
    assert str(parse_url(given)) == canonical
    assert str(parse_url(canonical)) == canonical


@pytest.mark.parametrize(
    "url",
    [
        "data:text/html,x",
        "data://text/html,x",
        "file:///etc/passwd",
        "file://localhost/x",
        "blob:http://x.test/1",
        "view-source:http://x.test/",
        "jar:http://x.test!/",
        "about:blank",
        "http:x.test",
        "httpx://x.test",
        "ws://x.test",
    ],
)
def test_other_schemes(url: str) -> None:
    with pytest.raises(ToolError, match="only URLs that start with http:// or https://"):
        parse_url(url)


def test_names_that_look_alike_are_shown_apart() -> None:
    """In the spelling that rules match on and people are asked about, no letter of another script is seen."""
    assert target("https://\u0430pple.test/") == "https://xn--pple-43d.test/"
    assert not parse_rule("web_fetch(https://apple.test/*)").matches(
        "web_fetch", target("https://\u0430pple.test/"), is_path=False
    )


@pytest.mark.parametrize(
    "text", ["", "http://", "http:/x", "example.test", "http://x.test/a b", "http://x.test/\0", "http://x.test/\ud800"]
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ToolError):
        parse_url(text)


def test_a_very_long_one() -> None:
    with pytest.raises(ToolError, match="longer than 8192"):
        parse_url("http://x.test/" + "a" * 9000)


def target(url: str) -> str | None:
    return tool_target(WebFetch(), {"url": url}, FakeTurn(Path("/nowhere")))


def test_rules_match_on_the_address() -> None:
    rule = parse_rule("web_fetch(https://docs.python.org/*)")
    for url in ("https://docs.python.org/3/", "HTTPS://Docs.Python.ORG:443", "https://docs.python.org./x?y"):
        assert rule.matches("web_fetch", target(url), is_path=False)
    for url in (
        "http://docs.python.org/",
        "https://docs.python.org.evil.test/",
        "https://docs.python.org:8443/",
        "https://evil.test/https://docs.python.org/",
    ):
        assert not rule.matches("web_fetch", target(url), is_path=False)
    deny = parse_rule("web_fetch(https://x.test/private/*)")
    for url in ("https://x.test/private/a", "https://x.test/p/../%70rivate/a"):
        assert deny.matches("web_fetch", target(url), is_path=False)
    # What cannot be read has no target, and then a rule that denies some does deny.
    assert target("https://a@x.test/") is None
    assert deny.may_match("web_fetch", None)


def test_the_plugin_offers_one_tool(tmp_path: Path) -> None:
    from openheim import ToolsContext

    (tool,) = openheim_tools(ToolsContext(tmp_path, tmp_path, ca_file="/x.pem"))
    assert tool.name == "web_fetch"
