"""What the model is told about web_fetch.

Names, texts and order are part of the contract with clients and with sessions on disk; what was added later is optional
and stands last.
"""

from __future__ import annotations

from typing import Any, Final

__all__ = ("DESCRIPTION", "WEB_FETCH")

DESCRIPTION: Final = (
    "Fetch a web page or other text-like resource (HTML, plain text, JSON, XML) from a public http(s) URL and return "
    "its content as plain text. HTML is stripped of markup. Requests time out after 20 seconds, redirects are not "
    "followed automatically (the redirect target is reported instead), and content is truncated at 256 KiB. Only "
    "publicly-routable addresses can be fetched."
)

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
