"""The fake turn, the scripted HTTP client, and the import report."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import anyio
import pytest

import openheim.testing
from openheim import ToolError
from openheim.errors import ProviderConnectionError
from openheim.testing import FakeTurn, HttpAnswer, Pause, ScriptedHttp, import_report

pytestmark = pytest.mark.anyio


async def test_a_turn_records_what_a_tool_says_and_asks(tmp_path: Path) -> None:
    turn = FakeTurn(tmp_path, answers=(True,))
    turn.progress("half done")
    assert [await turn.ask("May I?"), await turn.ask("And now?")] == [True, False]
    assert turn.progress_texts == ["half done"]
    assert turn.questions == ["May I?", "And now?"]
    assert not turn.cancelled
    turn.cancel()
    assert turn.cancelled


def test_files_of_a_turn_are_confined(tmp_path: Path) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "out.txt").write_text("secret", encoding="utf-8")
    turn = FakeTurn(tmp_path / "in", cwd=tmp_path / "in" / "deep")
    turn.files.replace("a.txt", b"tea")
    assert (tmp_path / "in" / "deep" / "a.txt").read_bytes() == b"tea"
    with pytest.raises(ToolError):
        turn.files.read_bytes("../../out.txt", limit=100)


def test_a_turn_gives_children_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert set(FakeTurn(tmp_path).env) == {"PATH"}


async def test_http_answers_from_its_script() -> None:
    http = ScriptedHttp([HttpAnswer.of("tea", status=418, content_type="text/plain"), OSError("broken")])
    async with http.stream("POST", "http://x/y", headers={"a": "b"}, content=b"?") as response:
        assert http.active == 1
        assert (response.status, response.headers["content-type"]) == (418, "text/plain")
        assert await response.read(2) == b"te"
        assert response.truncated
    assert http.active == 0
    (request,) = http.requests
    assert (request.method, request.url, request.headers, request.content) == ("POST", "http://x/y", {"a": "b"}, b"?")
    with pytest.raises(OSError, match="broken"):
        await http.stream("GET", "http://x").__aenter__()
    with pytest.raises(ProviderConnectionError):
        await http.stream("GET", "http://x").__aenter__()
    assert len(http.requests) == 3


async def test_http_streams_can_pause_and_break() -> None:
    pause = Pause()
    whole = HttpAnswer.of("0123456789")
    http = ScriptedHttp([whole.cut(pause), whole.cut(ProviderConnectionError("lost")), whole.cut()])
    received: list[bytes] = []

    async def fetch() -> None:
        async with http.stream("GET", "http://x") as response:
            async for chunk in response.chunks():
                received.append(chunk)  # noqa: PERF401  shows what came before a break

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fetch)
            await pause.reached()
            assert received == [b"01234"]
            pause.release()
    assert received == [b"01234", b"56789"]
    with pytest.raises(ProviderConnectionError, match="lost"):
        await fetch()
    assert http.active == 0
    received.clear()
    await fetch()
    assert received == [b"01234"]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path / "a_module.py"


def test_import_report_names_what_was_loaded(module: Path) -> None:
    module.write_text("import json.decoder\nimport openheim.errors\n", encoding="utf-8")
    report = import_report("a_module")
    assert {"a_module", "json", "json.decoder", "openheim.errors"} <= set(report.modules)
    assert report.loaded("json", "openheim.errors", "pydantic", "jso") == ("json", "openheim.errors")
    assert (report.actions, report.printed) == ((), "")
    assert report.import_ms > 0


def test_import_report_sees_what_an_import_does(module: Path) -> None:
    module.write_text(
        "import socket, subprocess, sys\n"
        "print('hi')\n"
        "subprocess.run([sys.executable, '-c', ''])\n"
        "try: socket.create_connection(('127.0.0.1', 1), 1)\n"
        "except OSError: pass\n",
        encoding="utf-8",
    )
    report = import_report("a_module")
    assert report.printed == "hi\n"
    assert {"subprocess.Popen", "socket.getaddrinfo", "socket.connect"} <= set(report.actions)


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("import no_such_library", "ModuleNotFoundError: No module named 'no_such_library'"),
        ("import os; os._exit(3)", "exit code 3"),
        ("raise SystemExit('bye')", "bye"),
        ("import threading; threading.Event().wait()", "did not finish within 1 s"),
    ],
)
def test_import_report_says_why_there_is_none(module: Path, source: str, complaint: str) -> None:
    module.write_text(source, encoding="utf-8")
    # Only the one that hangs needs a short limit.
    with pytest.raises(ImportError, match="a_module") as caught:
        import_report("a_module", timeout_secs=1 if "wait" in source else 20)
    assert complaint in str(caught.value)


def test_public_names() -> None:
    assert isinstance(openheim.testing.__all__, tuple)
    assert all(getattr(openheim.testing, name) is not None for name in openheim.testing.__all__)
    assert dir(openheim.testing) == sorted(openheim.testing.__all__)
    with pytest.raises(AttributeError):
        openheim.testing.NoSuchName  # noqa: B018  looked up to see it fail


def test_only_the_contracts_need_pytest() -> None:
    program = (
        "import sys; sys.modules['pytest'] = None\n"
        "import openheim.testing as kit\n"
        "assert not [name for name in sys.modules if name.startswith('openheim.testing.')]\n"
        "for name in kit.__all__:\n"
        "    try: getattr(kit, name)\n"
        "    except ImportError as err: print(err)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
    suites = ("EmbedderContract", "ProviderContract", "ToolsetContract")
    assert done.stdout == "".join(f"{suite} needs pytest: pip install pytest\n" for suite in suites)
