"""What holds for every toolset, and what clients rely on in this one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openheim import ToolsContext
from openheim.errors import ConfigError
from openheim.plugins.settings import check_settings
from openheim.testing import ToolsetContract
from openheim_tools_web.plugin import Settings, openheim_tools
from openheim_tools_web.web_fetch import WebFetch
from tests.support.replies import raw
from tests.support.server import ScriptedServer
from tests.tools_web.calls import LOOPBACK

CONTRACT: dict[str, Any] = {
    "name": "web_fetch",
    "description": "Fetch a web page or other text-like resource (HTML, plain text, JSON, XML) from a public http(s) "
    "URL and return its content as plain text. HTML is stripped of markup. Requests time out after 20 seconds, "
    "redirects are not followed automatically (the redirect target is reported instead), and content is truncated at "
    "256 KiB. Only publicly-routable addresses can be fetched.",
    "parameters": {
        "type": "object",
        "properties": {"url": {"type": "string", "description": "The http:// or https:// URL to fetch"}},
        "required": ["url"],
    },
}


class TestWebTools(ToolsetContract):
    plugin = "openheim_tools_web.plugin"
    settings = LOOPBACK

    @pytest.fixture
    def samples(self) -> Iterator[dict[str, dict[str, Any]]]:
        page = "<title>A page</title>" + "<p>words of a page that is longer than a small result</p>" * 500
        with ScriptedServer(default=raw(page, content_type="text/html")) as server:
            yield {"web_fetch": {"url": f"{server.url}/"}}
            assert server.requests or not server.connections


def test_the_schema_is_that_of_the_contract() -> None:
    """Byte for byte, but for optional arguments that were added behind."""
    tool = WebFetch()
    ours = json.loads(json.dumps(tool.parameters))
    added = [ours["properties"].pop(name) and name for name in ("start", "raw")]
    assert json.dumps({"name": tool.name, "description": tool.description, "parameters": ours}) == json.dumps(CONTRACT)
    assert list(tool.parameters["properties"]) == ["url", *added]


@pytest.mark.parametrize(
    ("settings", "limits"),
    [
        ({}, ("20 seconds", "256 KiB")),
        ({"allow_private": ["localhost"]}, ("20 seconds", "256 KiB")),
        ({"timeout_secs": 7.5, "max_bytes": 2 << 20}, ("7.5 seconds", "2,048 KiB")),
        ({"max_bytes": 300_000}, ("20 seconds", "300,000 bytes")),
    ],
)
def test_the_model_is_told_the_limits_that_are_in_force(settings: dict[str, Any], limits: tuple[str, str]) -> None:
    (tool,) = openheim_tools(ToolsContext(Path(), Path(), settings=settings))
    timeout, size = limits
    assert tool.description == CONTRACT["description"].replace("20 seconds", timeout).replace("256 KiB", size)


def test_traits() -> None:
    tool = WebFetch()
    assert (tool.kind, tool.read_only, tool.replay) == ("fetch", True, "safe")


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"timeout": 5}, r"timeout: unknown key \(did you mean timeout_secs\?\)"),
        ({"timeout_secs": 0}, "timeout_secs: should be greater than 0"),
        ({"max_bytes": 100}, "max_bytes: should be greater than or equal to 1024"),
        ({"max_bytes": 1 << 30}, "max_bytes: should be less than or equal to 4194304"),
        ({"allow_private": ["10.0.0.1/8"]}, "allow_private: '10.0.0.1/8' is no network, such as 10.0.0.0/8"),
        ({"allow_private": ["http://localhost"]}, "allow_private: 'http://localhost'"),
        ({"allow_private": ["a b"]}, "allow_private: 'a b' is no host"),
        ({"allow_private": ["127.1"]}, "allow_private: '127.1': the URL's host is an IPv4 address in an odd spelling"),
        ({"allow_private": ["localhost:99999"]}, "allow_private: 'localhost:99999': .* port"),
        ({"proxy": "ftp://x"}, "proxy: must start with http://"),
        ({"proxy": "http://user:s3cret@"}, "proxy: is not of the form SCHEME://HOST:PORT"),
    ],
)
def test_settings_are_checked(table: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=r"\[tools\.web\] " + problem) as caught:
        check_settings(Settings, table, where="[tools.web]")
    assert "s3cret" not in str(caught.value)


def test_nothing_heavy_is_imported_before_a_call() -> None:
    code = (
        "import sys; from pathlib import Path; from openheim import ToolsContext\n"
        "from openheim_tools_web.plugin import openheim_tools\n"
        "(tool,) = openheim_tools(ToolsContext(Path(), Path())); tool.parameters\n"
        "print([name for name in ('pydantic', 'httpcore', 'httpx', 'idna', 'html', 'urllib.request') if name in"
        " sys.modules])"
    )
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=True)
    assert child.stdout == "[]\n"
