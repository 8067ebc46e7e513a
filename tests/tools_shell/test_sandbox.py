"""What commands find in a sandbox beside the files of others: temporary files, programs, the network."""

from __future__ import annotations

import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools_shell.calls import Shell, refused

pytestmark = pytest.mark.anyio


# --- temporary files and caches ---


async def test_temporary_files_are_the_sessions_own(kind: str, work: Path) -> None:
    one, two = Shell(work, sandbox=kind, session_id="1"), Shell(work, sandbox=kind, session_id="2")
    name = (await one('f=$(mktemp) && echo words > "$f" && echo "$f"')).strip()
    assert await one(f"cat '{name}'") == "words\n"
    if kind == "bwrap":
        assert "words" not in await two(f"cat '{name}' || true")
        assert name not in await Shell(work)(f"ls -d '{name}' 2> /dev/null || true")
    assert await one('echo kept > "$XDG_CACHE_HOME/file"; cat "$XDG_CACHE_HOME/file"') == "kept\n"
    assert await two('ls "$XDG_CACHE_HOME"') == "(no output)"
    folders = work.parent / "data" / "shell"
    assert len([path for path in folders.iterdir() if path.is_dir()]) == 2
    await one('mkdir "$TMPDIR/locked" && touch "$TMPDIR/locked/file" && chmod 500 "$TMPDIR/locked"')
    for shell in (one, two):
        await shell.tools["execute_command"].close_session(shell.turn.session_id)  # type: ignore[attr-defined]
    assert [path.name for path in folders.iterdir()] == ["lock"]
    assert name not in await Shell(work)(f"ls -d '{name}' 2> /dev/null || true")


# --- programs ---


async def test_tools_of_the_trade_work(confined: Shell) -> None:
    git = "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one && git log --format=%s"
    assert await confined(git) == "one\n"
    code = "import tempfile; print(tempfile.TemporaryFile().write(b'ab'))"
    assert await confined(f"'{sys.executable}' -c \"{code}\"") == "2\n"
    if shutil.which("cc"):
        build = "printf '#include <stdio.h>\\nint main(){puts(\"built\");}' > a.c && cc a.c -o a && ./a"
        assert await confined(build) == "built\n"


# --- network ---


@pytest.fixture
def port() -> Iterator[int]:
    """Where a server would answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


async def test_the_network_is_there_unless_it_is_taken_away(kind: str, work: Path, port: int) -> None:
    ask = f'python3 -c \'import socket; socket.create_connection(("127.0.0.1", {port}), 5); print("connected")\''
    assert await Shell(work, sandbox=kind)(ask) == "connected\n"


async def test_no_network(bwrap: None, work: Path, port: int) -> None:
    ask = f"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 5)'"
    for mode in ("auto", "bwrap"):
        shell = Shell(work, sandbox=mode, network=False)
        assert "Connection refused" in await refused(shell, ask)
        assert await shell("tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '") == "lo\n"
