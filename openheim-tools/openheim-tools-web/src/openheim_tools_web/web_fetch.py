"""The tool web_fetch. What it takes to fetch a page is imported with the first call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim import TextBlock, ToolResult, text_room
from openheim_tools_web.schemas import WEB_FETCH, web_fetch_description

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openheim import Turn
    from openheim.tools import Replay, ToolKind
    from openheim_tools_web.copies import Copies
    from openheim_tools_web.guard import LookUp

__all__ = ("WebFetch",)


class WebFetch:
    """A :class:`~openheim.tools.Tool`.

    Args:
        ca_file: certificate authorities to trust, or None for the usual ones.
        look_up: finds the addresses of a name; by default, the system does.
        description: for the model; by default that with the usual limits.
    """

    name = "web_fetch"
    parameters: Mapping[str, Any] = WEB_FETCH
    kind: ToolKind = "fetch"
    read_only = True
    replay: Replay = "safe"

    def __init__(
        self, *, ca_file: str | None = None, look_up: LookUp | None = None, description: str | None = None
    ) -> None:
        self.description = description or web_fetch_description()
        self._ca_file = ca_file
        self._look_up = look_up
        self._copies: Copies | None = None

    def target(self, arguments: dict[str, Any], turn: Turn) -> str | None:
        """The address in its canonical spelling, so that no other spelling avoids a rule."""
        from openheim_tools_web.urls import parse_url

        return str(parse_url(arguments["url"]))

    async def run(self, arguments: dict[str, Any], turn: Turn) -> ToolResult:
        from openheim_tools_web.copies import Copies, CopyKey
        from openheim_tools_web.guard import Guard
        from openheim_tools_web.lookup import look_up
        from openheim_tools_web.pages import page_text, section
        from openheim_tools_web.settings import Settings
        from openheim_tools_web.urls import parse_url

        url = parse_url(arguments["url"])
        settings = Settings.model_validate(dict(turn.settings))
        guard = Guard(self._look_up or look_up, settings.private_hosts)
        start, raw = arguments.get("start", 0), arguments.get("raw", False)
        copies = self._copies = self._copies or Copies()
        key = CopyKey(turn.session_id, str(url), raw, settings)
        # Who starts at the beginning gets the page as it is now; who goes on, the one that the start was counted in.
        copy = copies.get(key) if start else None
        text = copy or await page_text(url, guard, settings, ca_file=self._ca_file, raw=raw)
        shown = section(text, start, text_room(turn))
        if copy is None:
            copies.keep(key, text if shown != text else "")
        return ToolResult((TextBlock(shown),), display={"title": f"Fetch {url}"})

    async def close_session(self, session_id: str) -> None:
        if self._copies is not None:
            self._copies.drop_session(session_id)
