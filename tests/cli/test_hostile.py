"""What goes wrong around a run: standard input, standard output, signals, folders."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.command import LIMIT, Command, finish, on_terminal, texts
from tests.plugins.distributions import make_distribution
from tests.support.openai_server import OpenAIServer
from tests.support.openai_wire import text, tool_calls

# --- standard input ---


def test_the_prompt_may_come_from_standard_input(openheim: Command) -> None:
    with OpenAIServer(default=text("ok")) as server:
        openheim.use(server)
        assert openheim("run", stdin="from stdin").code == 0
        assert openheim("run", "-", stdin="from dash").code == 0
        assert openheim("run", "explain", stdin="attached\n").code == 0
        assert openheim("run", "alone", stdin="").code == 0
    sent = [request.json["messages"][-1]["content"] for request in server.prompts]
    assert sent == ["from stdin", "from dash", "explain\n\n[standard input]\nattached\n", "alone"]


def test_five_megabytes_of_prompt(openheim: Command) -> None:
    prompt = "äöü\u2028 line\n" * 400_000
    with OpenAIServer([text("read it")]) as server:
        openheim.use(server)
        ended = openheim("run", stdin=prompt)
    assert (ended.code, ended.out) == (0, "read it\n")
    assert server.prompts[0].json["messages"][-1]["content"] == prompt
    assert texts(openheim.history()[0])[0] == f"user: {prompt}"


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"before\0after", "NUL byte at offset 6"),
        (b"caf\xe9", "not UTF-8: byte 0xe9 at offset 3"),
        (b"", "there is no prompt"),
        (b" \n\t", "there is no prompt"),
    ],
)
def test_standard_input_that_is_no_text(openheim: Command, data: bytes, complaint: str) -> None:
    with OpenAIServer() as server:
        openheim.use(server)
        ended = openheim("run", stdin=data)
    assert ended.code == 2
    assert complaint in ended.error
    assert not server.requests


def test_a_prompt_argument_that_is_no_utf8(openheim: Command) -> None:
    ended = openheim("run", "--provider", "demo", os.fsdecode(b"caf\xe9"))
    assert ended.code == 2
    assert "not UTF-8" in ended.error


# --- standard output ---


def test_a_reader_that_goes_away_ends_the_run_quietly(openheim: Command) -> None:
    with OpenAIServer(default=text(*["word "] * 5000)) as server:
        openheim.use(server)
        for form in ("text", "json", "stream-json"):
            reader, writer = os.pipe()
            process = openheim.start("run", "--output", form, "hi", stdout=writer)
            os.close(writer)
            os.close(reader)
            ended = finish(process)
            assert (ended.code, ended.err) == (141, ""), form
    assert len(openheim.history()) == 3


def test_head_gets_its_lines(openheim: Command) -> None:
    with OpenAIServer([text(*["word "] * 5000)]) as server:
        openheim.use(server)
        process = openheim.start("run", "--output", "stream-json", "hi")
        assert process.stdout is not None
        head = subprocess.run(["head", "-n", "2"], stdin=process.stdout, capture_output=True, timeout=LIMIT, check=True)
        process.stdout.close()
        process.stdout = None
        ended = finish(process)
    assert len(head.stdout.splitlines()) == 2
    assert (ended.code, ended.err) == (141, "")


def test_a_reader_that_stalls_does_not_stop_ctrl_c(openheim: Command) -> None:
    with OpenAIServer([text(*["x" * 2000] * 2000).hold(after=1500)]) as server:
        openheim.use(server)
        process = openheim.start("run", "--output", "stream-json", "hi")
        server.wait_requests(1)
        assert process.stdout is not None
        # One line is read; then the pipe fills up, long before the server holds.
        assert json.loads(process.stdout.readline())["type"] == "session"
        process.send_signal(signal.SIGINT)
        server.prompts[0].wait_left()
        ended = finish(process)
    assert ended.code == 130
    assert next(line["role"] for line in openheim.history()[0]) == "user"


# --- signals ---


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.parametrize("form", ["text", "json", "stream-json"])
def test_a_signal_while_the_model_answers(openheim: Command, number: signal.Signals, code: int, form: str) -> None:
    with OpenAIServer([text("so ", "far").hold(after=2)]) as server:
        openheim.use(server)
        process = openheim.start("run", "--output", form, "hi")
        server.wait_requests(1)
        if form == "stream-json":
            assert process.stdout is not None
            while json.loads(process.stdout.readline())["type"] != "text_delta":
                pass
        process.send_signal(number)
        server.requests[0].wait_left()
        ended = finish(process)
    assert ended.code == code
    assert "Traceback" not in ended.err
    if form == "json":
        assert (ended.json["status"], ended.json["stop_reason"]) == ("cancelled", "cancelled")
    if form == "stream-json":
        assert texts(openheim.history()[0]) == ["user: hi", "assistant: so "]
        assert ended.lines[-1]["status"] == "cancelled"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_at_once(openheim: Command, tmp_path: Path, number: signal.Signals) -> None:
    # A tool that does not let itself be cancelled: reading from a process that never writes.
    (openheim.folder / "stubborn.py").write_text(STUBBORN)
    with OpenAIServer([tool_calls(("stubborn", {})), text("never")]) as server:
        openheim.use(server)
        started = tmp_path / "started"
        os.mkfifo(started)
        process = openheim.start_program([*_python(), str(openheim.folder / "stubborn.py"), str(started)])
        with started.open() as opened:
            assert opened.read() == "running"
        process.send_signal(number)
        assert process.stderr is not None
        assert process.stderr.readline() == b"cancelling\n"
        process.send_signal(number)
        ended = finish(process)
    assert ended.code == 128 + number


def test_a_second_signal_ends_at_once_though_a_tool_blocks_the_event_loop(openheim: Command, tmp_path: Path) -> None:
    # Not one long sleep: the system may hand one of two signals to another thread, which does not end a sleep.
    blocking = "while True: time.sleep(0.01)"
    (openheim.folder / "stubborn.py").write_text(STUBBORN.replace("await anyio.sleep_forever()", blocking, 1))
    with OpenAIServer([tool_calls(("stubborn", {})), text("never")]) as server:
        openheim.use(server)
        started = tmp_path / "started"
        os.mkfifo(started)
        process = openheim.start_program([*_python(), str(openheim.folder / "stubborn.py"), str(started)])
        with started.open() as opened:
            assert opened.read() == "running"
        # Two of one kind could become one on the way.
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        ended = finish(process)
    assert ended.code == 143
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_that_python_drops_ends_the_process(openheim: Command, number: signal.Signals, code: int) -> None:
    program = openheim.folder / "finalizer.py"
    program.write_text(FINALIZER)
    process = openheim.start_program([*_python(), str(program)])
    assert process.stdout is not None
    assert process.stdout.readline() == b"in a finalizer\n"
    process.send_signal(number)
    assert finish(process).code == code


FINALIZER = """
import sys
import time
import openheim.cli.app as app
from openheim.cli import main


class Slow:
    def __del__(self):
        print("in a finalizer", flush=True)
        time.sleep(600)


app.run_command = lambda arguments: Slow() and 0
sys.argv = ["openheim", "anything"]
main()
"""


STUBBORN = """
import sys
import time
import anyio
import openheim.runtime.runtime as module
from openheim import tool
from openheim.cli import main

fifo = sys.argv[1]


@tool
async def stubborn() -> str:
    with open(fifo, "w") as file:
        file.write("running")
    try:
        await anyio.sleep_forever()
    finally:
        print("cancelling", file=sys.stderr, flush=True)
        with anyio.CancelScope(shield=True):
            await anyio.sleep_forever()


real = module.Runtime.__init__


def with_stubborn(self, *args, **kwargs):
    real(self, *args, **{**kwargs, "tools": (stubborn,)})


module.Runtime.__init__ = with_stubborn
sys.argv = ["openheim", "run", "hi"]
main()
"""


def _python() -> list[str]:
    import sys

    return [sys.executable]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_standard_input_is_read(openheim: Command, number: signal.Signals, code: int) -> None:
    process = openheim.start("run", "--provider", "demo", "--log-level", "debug", stdin=subprocess.PIPE)
    assert process.stdin is not None
    # More than a pipe holds: once all of it is written, the process is reading.
    process.stdin.write(b"x" * 300_000)
    process.stdin.flush()
    process.send_signal(number)
    ended = finish(process)
    assert ended.code == code
    assert "Traceback" not in ended.err


@pytest.mark.slow
def test_a_signal_at_any_moment_of_a_run(openheim: Command, long_counts: bool) -> None:
    """Starts runs and interrupts each a little later than the one before, from the first instant to the end."""
    import time

    allowed = {signal.SIGINT: (130, -signal.SIGINT, 0), signal.SIGTERM: (143, -signal.SIGTERM, 0)}
    with OpenAIServer(default=text("a", "b", "c")) as server:
        openheim.use(server)
        for step in range(0, 40, 1 if long_counts else 5):
            for number, codes in allowed.items():
                process = openheim.start("run", "hi")
                # Not a wait for anything: the moment is what varies.
                time.sleep(step * 0.012)
                process.send_signal(number)
                ended = finish(process)
                if _in_interpreter_start(ended.err):
                    continue
                # Before Python runs, the system's own handling applies.
                assert ended.code in codes, (step, ended)
                assert "Traceback" not in ended.err, (step, ended)
    for session in openheim.history():
        assert session[0]["role"] == "user"


def _in_interpreter_start(err: str) -> bool:
    """Whether the interrupt met the interpreter before the first line of ours."""
    return "init_import_site" in err or ("Traceback" in err and "openheim" not in err) or "<frozen runpy>" in err


# --- folders ---


def test_no_home_folder(openheim: Command) -> None:
    ended = openheim("run", "--provider", "demo", "hi", env={"OPENHEIM_HOME": None, "HOME": "/proc/nowhere"})
    assert ended.code in (1, 2)
    assert "OPENHEIM_HOME" in ended.error


def test_a_home_that_is_a_file(openheim: Command) -> None:
    openheim.home.parent.mkdir(parents=True, exist_ok=True)
    openheim.home.write_text("")
    ended = openheim("run", "--provider", "demo", "hi")
    assert ended.code in (1, 2)
    assert ended.error


def test_a_directory_that_was_removed(openheim: Command, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    process = openheim.start(
        "run", "--provider", "demo", "hi", cwd=gone, stdin=subprocess.PIPE, env={"PYTHONSAFEPATH": "1"}
    )
    gone.rmdir()
    ended = finish(process, b"")
    if ended.code == 0:  # The process looked before the directory went.
        return
    assert ended.code == 2
    assert "directory" in ended.error


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_log_that_cannot_be_written_is_told(openheim: Command) -> None:
    with OpenAIServer([text("never")]) as server:
        openheim.use(server)
        history = openheim.home / "history"
        history.mkdir(parents=True)
        driver = openheim.folder / "full.py"
        driver.write_text(
            "import sys, uuid\n"
            "fixed = uuid.UUID('550e8400-e29b-41d4-a716-446655440000')\n"
            "uuid.uuid4 = lambda: fixed\n"
            "sys.argv = ['openheim', 'run', 'hi']\n"
            "from openheim.cli import main\n"
            "main()\n"
        )
        (history / "550e8400-e29b-41d4-a716-446655440000.jsonl").symlink_to("/dev/full")
        done = subprocess.run(
            [*_python(), str(driver)],
            cwd=openheim.folder,
            env=openheim.environment,
            capture_output=True,
            timeout=LIMIT,
            text=True,
            stdin=subprocess.DEVNULL,
        )
    assert done.returncode == 1
    assert "could not be saved, so it was not sent" in done.stderr
    assert not server.requests


def test_a_history_that_is_removed_in_the_middle_of_a_turn_is_told(openheim: Command) -> None:
    remove = (
        "import os, shutil\n"
        "import openheim.runtime.session as module\n"
        "def acknowledge(self, real=module.Transcript.acknowledge):\n"
        "    real(self)\n"
        "    shutil.rmtree(os.environ['OPENHEIM_HOME'] + '/history', ignore_errors=True)\n"
        "module.Transcript.acknowledge = acknowledge"
    )
    ended = finish(drive(openheim, remove, "--provider", "demo", "hello"))
    assert ended.code == 1
    assert ended.out
    assert "the session may not be saved" in ended.error
    assert "it was removed while it was in use" in ended.error


def test_metadata_that_cannot_be_replaced_is_told_once(openheim: Command) -> None:
    put_folder = (
        "import pathlib\n"
        "import openheim.runtime.saving as module\n"
        "def prepare(self, real=module.SessionSaver.prepare_flush):\n"
        "    path = self._store.meta_path(self._meta.id)\n"
        "    path.is_dir() or (path.unlink(), path.mkdir())\n"
        "    return real(self)\n"
        "module.SessionSaver.prepare_flush = prepare"
    )
    ended = finish(drive(openheim, put_folder, "--provider", "demo", "hello"))
    assert ended.code == 1
    assert ended.out
    assert ended.error.count("may not be saved") == 1
    assert "Is a directory" in ended.error


# --- what review found ---

DRIVER = """
import sys
{before}
sys.argv = ["openheim", "run", *sys.argv[1:]]
from openheim.cli import main
main()
"""


def drive(openheim: Command, before: str, *arguments: str, **options: object) -> subprocess.Popen[bytes]:
    """Starts ``openheim run`` after some preparation inside its process."""
    script = openheim.folder / "driver.py"
    script.write_text(DRIVER.format(before=before))
    return subprocess.Popen(
        [*_python(), str(script), *arguments],
        cwd=openheim.folder,
        env=openheim.environment,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        **{"stdout": subprocess.PIPE, **options},  # type: ignore[call-overload]  # options of Popen
    )


def test_a_reader_that_is_too_slow_ends_the_run_with_a_reason(openheim: Command) -> None:
    with OpenAIServer([text(*["x" * 5000] * 1000).hold()]) as server:
        openheim.use(server)
        small = "import openheim.cli.output as output; output.WAITING_BYTES = 100_000"
        process = drive(openheim, small, "--output", "stream-json", "hi")
        assert process.stderr is not None
        assert process.stderr.readline() == b"error: the reader of standard output is too slow\n"
        process.communicate(timeout=LIMIT)
    assert process.returncode == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_an_answer_that_cannot_be_written(openheim: Command) -> None:
    with open("/dev/full", "wb") as full:
        ended = finish(openheim.start("run", "--provider", "demo", "hello", stdout=full))
    assert ended.code == 1
    assert ended.error == "error: cannot write to standard output: No space left on device"


def _unwritable(kind: str) -> int:
    if kind == "full":
        return os.open("/dev/full", os.O_WRONLY)
    if kind == "read only":
        return os.open(os.devnull, os.O_RDONLY)
    reader, writer = os.pipe()
    os.close(reader)
    return writer


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("kind", ["full", "no reader", "read only"])
def test_a_standard_error_that_cannot_be_written_changes_nothing(openheim: Command, kind: str) -> None:
    descriptor = _unwritable(kind)
    limited = ("run", "--provider", "demo", "--max-iterations", "1", "--output", "json", "What is in this directory?")
    ended = finish(openheim.start(*limited, stderr=descriptor))
    assert (ended.code, ended.json["status"]) == (3, "limited")
    assert finish(openheim.start("run", "--provider", "nope", "hi", stderr=descriptor)).code == 2
    os.close(descriptor)


def test_a_closed_standard_error_changes_nothing(openheim: Command) -> None:
    command = f"exec {sys.executable} -m openheim run --provider nope hi 2>&-"
    done = subprocess.run(["sh", "-c", command], env=openheim.environment, cwd=openheim.folder, timeout=LIMIT)
    assert done.returncode == 2


def test_a_slow_standard_error_that_does_not_block_gets_what_it_can_take(openheim: Command) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    while True:
        try:
            os.write(writer, b"x" * 65536)
        except BlockingIOError:
            break
    # Full, and nobody reads: the line is given up, and nothing else.
    assert finish(openheim.start("run", "--provider", "nope", "hi", stderr=writer)).code == 2
    os.close(reader)
    os.close(writer)


def test_an_internal_error_gives_the_object_that_was_asked_for(openheim: Command) -> None:
    broken = (
        "import openheim.runtime.session as module\n"
        "async def run(self, content): raise ExceptionGroup('tasks', [ValueError('odd')])\n"
        "module.Session.run = run"
    )
    for form in ("json", "stream-json"):
        ended = finish(drive(openheim, broken, "--provider", "demo", "--output", form, "hi"))
        last = json.loads(ended.out.splitlines()[-1])
        assert (ended.code, last["status"], last["error"]["kind"]) == (1, "failed", "internal")
        assert last["error"]["message"] == "ValueError: odd"
        assert last["session_id"]
        assert ended.error


def test_what_tools_print_is_not_part_of_the_answer(openheim: Command, tmp_path: Path) -> None:
    body = (
        "import os, sys\n"
        "from openheim import hookimpl, tool\n"
        "@tool\n"
        "async def chatty() -> str:\n"
        "    print('PRINTED'); sys.stdout.flush(); os.system('echo SHELL'); return 'ok'\n"
        "class Plugin:\n"
        "    @hookimpl\n"
        "    def openheim_tools(self): return [chatty]\n"
        "plugin = Plugin()\n"
    )
    site = tmp_path / "site"
    make_distribution(
        site, "acme-chatty", "1", {"openheim.tools": ["chatty = acme_chatty:plugin"]}, {"acme_chatty": body}
    )
    with OpenAIServer(default=text("answer")) as server:
        server.add(tool_calls(("chatty", {})))
        openheim.use(server)
        ended = openheim("run", "hi", env={"PYTHONPATH": str(site)})
        called = openheim("tools", "call", "chatty", env={"PYTHONPATH": str(site)})
    assert ended.out == "answer\n"
    assert called.out == "ok\n"
    assert "PRINTED" in ended.err
    assert "SHELL" in ended.err


def test_modules_of_the_working_directory_are_not_imported(openheim: Command) -> None:
    (openheim.folder / "pluggy.py").write_text("open('imported', 'w')\nraise SystemExit(9)\n")
    (openheim.folder / "json.py").write_text("open('imported', 'w')\nraise SystemExit(9)\n")
    ended = openheim("run", "--provider", "demo", "hello")
    assert ended.code == 0
    assert not (openheim.folder / "imported").exists()


def test_a_pipe_that_nobody_closes_is_bounded_by_the_time_limit(openheim: Command) -> None:
    process = openheim.start("run", "--provider", "demo", "--timeout", "0.5", "hi", stdin=subprocess.PIPE)
    assert process.wait(LIMIT) == 2
    assert process.stderr is not None
    assert b"standard input did not end within --timeout" in process.stderr.read()
    assert process.stdin is not None
    process.stdin.close()
    process.stderr.close()
    assert process.stdout is not None
    process.stdout.close()


def test_standard_input_that_does_not_block(openheim: Command) -> None:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    process = openheim.start("run", "--provider", "demo", stdin=reader)
    os.close(reader)
    os.write(writer, b"hello")
    os.close(writer)
    ended = finish(process)
    assert ended.code == 0
    assert "demo provider" in ended.out


def test_slips_give_the_object_that_was_asked_for(openheim: Command) -> None:
    for arguments in (["--max-iterations", "0"], ["--timeout", "0"], ["--mode", "fast"]):
        ended = openheim("run", "--provider", "demo", "--output", "json", *arguments, "hi")
        assert (ended.code, ended.json["error"]["kind"]) == (2, "usage" if arguments[0] != "--mode" else "config")


def test_a_standard_output_that_does_not_block_gets_everything(openheim: Command) -> None:
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    with OpenAIServer([text("x" * 300_000)]) as server, open(ours, "rb") as reader:
        openheim.use(server)
        process = openheim.start("run", "hi", stdout=theirs)
        os.close(theirs)
        assert len(reader.read()) == 300_001
        ended = finish(process)
    assert ended.code == 0, ended.err


def test_nothing_of_a_model_or_a_file_speaks_to_a_terminal(openheim: Command) -> None:
    hostile = "q \x1b]0;title\x07 \x9b31m \u202eback\u202c \u2066in\u2069 z"
    (openheim.folder / "a.txt").write_text(hostile, encoding="utf-8")
    replies = [tool_calls(("read_file", {"path": hostile})), *[text(hostile)] * 3]
    with OpenAIServer(replies) as server:
        openheim.use(server)
        for arguments in (
            ("run", "hi"),
            ("run", "--output", "json", "hi"),
            ("run", "--output", "stream-json", "hi"),
            ("tools", "call", "read_file", '{"path": "a.txt"}'),
        ):
            code, shown = on_terminal(openheim, *arguments)
            assert code == 0, shown
            assert "q " in shown
            assert not set(shown) & set("\x1b\x07\x9b\u202e\u202c\u2066\u2069"), arguments
        assert openheim("tools", "call", "read_file", '{"path": "a.txt"}').out.count("\x1b") == 1


def test_what_cannot_be_read_of_a_stream_is_told_once_and_not_shown(openheim: Command) -> None:
    key = "sk-of-a-proxy-that-repeats-it"
    events = [f"data: Authorization: Bearer {key}\n\n".encode()] * 50
    reply = text("fine")
    with OpenAIServer([replace(reply, pieces=(*events, *reply.pieces))]) as server:
        openheim.use(server)
        ended = openheim("run", "hi")
    assert (ended.code, ended.out) == (0, "fine\n"), ended.err
    assert key not in ended.err
    assert ended.err.count("skipped") == 1


def test_an_error_that_cannot_say_what_it_is_is_reported_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    from openheim.cli.failures import report_failure

    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert report_failure(Mute()) == 1
    assert capsys.readouterr().err.startswith("error: Mute (this is a fault")
