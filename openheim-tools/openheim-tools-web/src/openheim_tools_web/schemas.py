"""What the model is told about web_fetch.

Names, texts and order are part of the contract with clients and with sessions on disk; what was added later is optional
and stands last.
"""

from __future__ import annotations

from typing import Any, Final

__all__ = ("MAX_BYTES", "TIMEOUT_SECS", "WEB_FETCH", "web_fetch_description")

#: What the settings say where they say nothing, and the contract with them.
TIMEOUT_SECS = 20.0
MAX_BYTES = 256 * 1024


def web_fetch_description(timeout_secs: float = TIMEOUT_SECS, max_bytes: int = MAX_BYTES) -> str:
    """With the limits that are in force; by default the text of the contract."""
    return (
        "Fetch a web page or other text-like resource (HTML, plain text, JSON, XML) from a public http(s) URL and "
        f"return its content as plain text. HTML is stripped of markup. Requests time out after {timeout_secs:g} "
        "seconds, redirects are not followed automatically (the redirect target is reported instead), and content is "
        f"truncated at {_size(max_bytes)}. Only publicly-routable addresses can be fetched."
    )


def _size(count: int) -> str:
    return f"{count // 1024:,} KiB" if count % 1024 == 0 else f"{count:,} bytes"


WEB_FETCH: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "url": {"type": "string", "description": "The http:// or https:// URL to fetch"},
        "start": {
            "type": "integer",
            "minimum": 0,
            "description": "Character of the text to start from (0-based), to go on where a result was cut. "
            "Defaults to 0.",
        },
        "raw": {
            "type": "boolean",
            "description": "Return HTML as it was sent, with its markup. Defaults to false.",
        },
    },
    "required": ["url"],
}
