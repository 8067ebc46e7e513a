"""The ``openheim`` command as a user runs it: a process of its own, with a home folder and a scripted server."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.keys import require_no_key
from tests.support.openai_server import OpenAIServer

#: Seconds that any command may take: far more than any needs.
LIMIT = 40.0


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The objects of ``--output stream-json``."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def error(self) -> str:
        """The one line on stderr that starts with ``error:``."""
        (line,) = [line for line in self.err.splitlines() if line.startswith("error: ")]
        assert "Traceback" not in self.err
        return line


class Command:
    """Runs ``openheim`` in ``folder``, with ``home`` as its OPENHEIM_HOME."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        self.home = home
        self.environment = {**os.environ, "OPENHEIM_HOME": str(home)}
        self.environment.pop("PYTHONPATH", None)

    def configure(self, text: str) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        (self.home / "config.toml").write_text(text)

    def use(self, server: OpenAIServer, more: str = "", *, kind: str = "openai_compatible", top: str = "") -> None:
        """Makes the server the default provider; its model is gpt-4o unless ``more`` names one."""
        entry = f'kind = "{kind}"\napi_base = "{server.base_url}"\n{more}\n'
        if kind == "openai_compatible" and "default_model" not in more and "\nmodels" not in f"\n{more}":
            entry = f'default_model = "gpt-4o"\n{entry}'
        self.configure(f"{top}\n[providers.test]\n{entry}")

    def hide(self, *distributions: str) -> None:
        """Makes it look as if these distributions were not installed."""
        folder = self.folder.parent / "hiding"
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(_HIDING.format(distributions))
        self.environment["PYTHONPATH"] = str(folder)

    def start(self, *arguments: str, stdin: Any = subprocess.DEVNULL, **options: Any) -> subprocess.Popen[bytes]:
        return self.start_program([sys.executable, "-m", "openheim", *arguments], stdin=stdin, **options)

    def start_program(
        self, program: list[str], *, stdin: Any = subprocess.DEVNULL, **options: Any
    ) -> subprocess.Popen[bytes]:
        """Starts another program where the command would run."""
        environment = self.environment | options.pop("env", {})
        return subprocess.Popen(
            program,
            cwd=options.pop("cwd", self.folder),
            env={name: value for name, value in environment.items() if value is not None},
            stdin=stdin,
            stdout=options.pop("stdout", subprocess.PIPE),
            stderr=options.pop("stderr", subprocess.PIPE),
            preexec_fn=_heed_signals,
            **options,
        )

    def __call__(
        self,
        *arguments: str,
        stdin: bytes | str | None = None,
        env: Mapping[str, str | None] | None = None,
        **options: Any,
    ) -> Ended:
        given = stdin.encode() if isinstance(stdin, str) else stdin
        process = self.start(
            *arguments, stdin=subprocess.DEVNULL if given is None else subprocess.PIPE, env=dict(env or {}), **options
        )
        return finish(process, given)

    def history(self) -> list[list[dict[str, Any]]]:
        """The messages of every stored session."""
        return [
            [line for line in map(json.loads, path.read_text().splitlines()) if "record" not in line]
            for path in sorted((self.home / "history").glob("*.jsonl"))
        ]


_HIDING = """
import importlib.metadata as metadata

found = metadata.distributions
metadata.distributions = lambda **options: (one for one in found(**options) if one.metadata["Name"] not in {!r})
"""


def _heed_signals() -> None:
    """A background job may have them ignored; what a user starts in a terminal never has."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def finish(process: subprocess.Popen[bytes], stdin: bytes | None = None) -> Ended:
    try:
        out, err = process.communicate(stdin, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    ended = Ended(process.returncode, (out or b"").decode(), (err or b"").decode())
    require_no_key("what a command prints", ended.out)
    require_no_key("what a command prints on stderr", ended.err)
    return ended


def on_terminal(openheim: Command, *arguments: str, typed: str = "") -> tuple[int, str]:
    """Exit code and everything shown, with a terminal for standard input and error."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "openheim", *arguments],
        cwd=openheim.folder,
        env=openheim.environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    os.write(ours, typed.encode())
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # The other end is closed.
            break
        if not part:
            break
        shown += part
    os.close(ours)
    return process.wait(LIMIT), shown.decode()


def texts(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Role and text of each message."""
    return [
        f"{message['role']}: {''.join(block.get('text', '') for block in message['content'])}" for message in messages
    ]
