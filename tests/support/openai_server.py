"""A scripted server that speaks OpenAI's wire, for tests in this process and for child processes.

::

    async with OpenAIServer([tool_calls(("read_file", {"path": "a.md"})), text("It says ", "hi.")]) as server:
        ...  # server.base_url, server.requests

    python -m tests.support.openai_server SCRIPT.json [--requests FILE]

prints the base address on a line of its own and serves until its standard input ends. SCRIPT.json holds a list of
replies (or ``{"replies": [...], "models": [...]}``), each an object with one of

- ``text``: a text or a list of pieces; with ``thinking``, ``finish`` and ``usage`` (``[prompt, completion]``);
- ``tool_calls``: a list of ``{"name", "arguments", "id"}``, also with ``text``;
- ``error``: ``{"status", "message", "type", "code", "headers"}``;
- ``vectors``: a list of embeddings;
- ``raw``: the body as it is, with ``status`` and ``content_type``;

with ``"wire": "responses"`` for the Responses wire (``usage`` is then ``[input, output, cached]``, and there is no
``finish``); and, for any of them, ``split``, ``end``, ``framing`` (see :class:`tests.support.replies.Reply`) and
``delay_secs`` (a pause before each piece).

FILE gets one JSON object a request: ``method``, ``path``, ``headers`` and ``body``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.support import openai_wire, responses_wire
from tests.support.replies import Reply, raw
from tests.support.server import Request, ScriptedServer

__all__ = ("OpenAIServer", "reply_from_json")


class OpenAIServer(ScriptedServer):
    """Answers every ``POST`` (replies on either wire, embeddings) from the script, in order.

    ``GET …/models`` is answered apart and uses up nothing.
    """

    def __init__(
        self,
        replies: Iterable[Reply] | Callable[[Request], Reply] = (),
        *,
        models: Iterable[str] | Reply = (openai_wire.MODEL,),
        **options: Any,
    ) -> None:
        super().__init__(replies, **options)
        self.models = models if isinstance(models, Reply) else openai_wire.models(*models)

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def prompts(self) -> list[Request]:
        """The requests for replies, without those for the list of models."""
        return [request for request in self.requests if request.method == "POST"]

    def reply_to(self, request: Request) -> Reply:
        if request.method == "GET" and request.path.endswith("/models"):
            return self.models
        return super().reply_to(request)


def reply_from_json(entry: Mapping[str, Any]) -> Reply:
    """A reply of a script file."""
    wire = responses_wire if entry.get("wire") == "responses" else openai_wire
    options: dict[str, Any] = {key: entry[key] for key in ("thinking", "finish") if key in entry}
    if "usage" in entry:
        options["usage"] = tuple(entry["usage"]) if entry["usage"] else None
    if "tool_calls" in entry:
        calls = [
            (call["name"], call.get("arguments", {}), *([call["id"]] if "id" in call else []))
            for call in entry["tool_calls"]
        ]
        reply = wire.tool_calls(*calls, text=entry.get("text", ""), **options)
    elif "text" in entry:
        pieces = [entry["text"]] if isinstance(entry["text"], str) else entry["text"]
        reply = wire.text(*pieces, **options)
    elif "error" in entry:
        reply = openai_wire.error(**entry["error"])
    elif "vectors" in entry:
        reply = openai_wire.embeddings(*entry["vectors"])
    elif "raw" in entry:
        given = {key: entry[key] for key in ("status", "content_type") if key in entry}
        reply = raw(entry["raw"], **given)
    else:
        raise ValueError(f"a reply needs one of text, tool_calls, error, vectors and raw, and this has none: {entry}")
    if "split" in entry:
        reply = reply.split(entry["split"])
    if "delay_secs" in entry:
        reply = reply.slow(entry["delay_secs"])
    if "end" in entry:
        reply = reply.ending(entry["end"])
    return reply.framed(entry["framing"]) if "framing" in entry else reply


class _LoggingServer(OpenAIServer):
    """Also writes its requests to a file."""

    log: Path | None = None

    def _record(self, request: Request) -> None:
        if self.log is not None:
            try:
                body = request.json if request.body else None
            except ValueError:
                body = request.body.decode("utf-8", "replace")
            entry = {"method": request.method, "path": request.path, "headers": request.headers, "body": body}
            with self.log.open("a", encoding="utf-8") as log:
                log.write(json.dumps(entry) + "\n")
        super()._record(request)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.support.openai_server")
    parser.add_argument("script", type=Path)
    parser.add_argument("--requests", type=Path)
    options = parser.parse_args()
    script = json.loads(options.script.read_text(encoding="utf-8"))
    if isinstance(script, list):
        script = {"replies": script}
    replies = [reply_from_json(entry) for entry in script["replies"]]
    server = _LoggingServer(replies, models=script.get("models", (openai_wire.MODEL,)))
    server.log = options.requests
    with server:
        sys.stdout.write(f"{server.base_url}\n")
        sys.stdout.flush()
        sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
