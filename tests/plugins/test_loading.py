"""What an import may do: fail, exit, print, hang. None of it is our failure, and none of it reaches stdout."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from openheim.errors import (
    PluginConflictError,
    PluginDisabledError,
    PluginIncompatibleError,
    PluginLoadError,
    PluginNotFoundError,
)
from openheim.plugins.policy import PluginPolicy
from openheim.plugins.supervision import diverted_stdout
from tests.plugins.distributions import (
    environment,
    make_distribution,
    make_tool_distribution,
    run_python,
    tool_plugin,
)
from tests.plugins.hosts import host_over


def failing(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PluginLoadError:
    """The error of loading a toolset whose module is ``source``."""
    module = f"failing_{tmp_path.name.replace('-', '_')}"
    make_tool_distribution(tmp_path / "site", "oh-bad", "x", source, module=module)
    host = host_over(tmp_path / "site", monkeypatch).host
    with pytest.raises(PluginLoadError) as caught:
        host.load("tools", "x")
    (row,) = host.rows()
    assert row.status == "error"
    with pytest.raises(PluginLoadError):
        host.load("tools", "x")
    return caught.value


def test_a_missing_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    err = failing("import no_such_library", tmp_path, monkeypatch)
    assert err.message == "Plugin tools:x (oh-bad 1.0) could not be loaded: ModuleNotFoundError: no_such_library"
    assert err.hint == "run with --debug for the traceback"
    assert isinstance(err.__cause__, ModuleNotFoundError)


def test_a_failing_plugin_is_not_imported_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marks = tmp_path / "marks"
    source = f"import os\nos.write(os.open({str(marks)!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND), b'x')\n1 / 0\n"
    failing(source, tmp_path, monkeypatch)
    assert marks.read_text() == "x"


@pytest.mark.parametrize(
    ("source", "described"),
    [
        ("raise RuntimeError('two\\nlines')", "RuntimeError: two lines"),
        ("raise RuntimeError", "RuntimeError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("assert False, 'no'", "AssertionError: no"),
        ("class Panic(BaseException): pass\nraise Panic('rust')", "Panic: rust"),
        ("this is no python", "SyntaxError: invalid syntax"),
        ("x = 1", "AttributeError: module 'failing_"),
    ],
)
def test_whatever_an_import_raises_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, described: str
) -> None:
    err = failing(source, tmp_path, monkeypatch)
    assert f"could not be loaded: {described}" in err.message
    assert "\n" not in str(err)


def test_a_long_message_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(str(failing("raise ValueError('x' * 100_000)", tmp_path, monkeypatch))) < 500


def test_an_interrupt_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_tool_distribution(tmp_path, "oh-int", "x", "raise KeyboardInterrupt", module="interrupting_module")
    with pytest.raises(KeyboardInterrupt):
        host_over(tmp_path, monkeypatch).host.load("tools", "x")


def test_the_listing_names_the_place_of_the_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "def deep():\n    raise ValueError('deep down')\n\ndeep()\n"
    make_tool_distribution(tmp_path / "site", "oh-bad", "x", source, module="placed_module")
    host = host_over(tmp_path / "site", monkeypatch).host
    with pytest.raises(PluginLoadError):
        host.load("tools", "x")
    (row,) = host.rows()
    assert row.note == "ValueError: deep down (site/placed_module.py:4)"


NOISY = f"""\
import os, subprocess, sys
print("from print")
sys.__stdout__.write("from the real stream\\n")
os.write(1, b"from the descriptor\\n")
subprocess.run([sys.executable, "-c", "print('from a child')"])
kept = sys.stdout
{tool_plugin("noisy")}
"""

LOADING = """\
import sys
from openheim.plugins.host import PluginHost
from openheim.plugins.policy import PluginPolicy
sys.stdout.write("before\\n")
loaded = PluginHost(PluginPolicy(), report=print).load("tools", "x")
loaded.plugin
print("after")
"""


def test_what_is_printed_at_import_goes_to_stderr(tmp_path: Path) -> None:
    make_tool_distribution(tmp_path / "site", "oh-noisy", "x", NOISY)
    done = run_python("-c", LOADING, folders=[tmp_path / "site"])
    assert done.stdout == "before\nafter\n"
    assert done.returncode == 0
    for source in ("print", "the real stream", "the descriptor", "a child"):
        assert f"from {source}\n" in done.stderr


def test_what_is_printed_in_a_hook_goes_to_stderr(tmp_path: Path) -> None:
    source = tool_plugin("a_tool").replace("        return [", "        print('from the hook')\n        return [")
    make_tool_distribution(tmp_path / "site", "oh-noisy", "x", source)
    done = run_python("-m", "openheim", "tools", "list", "--json", folders=[tmp_path / "site"])
    assert "from the hook\n" in done.stderr
    assert "from the hook" not in done.stdout
    assert "a_tool" in done.stdout


def test_diversions_may_overlap(capfd: pytest.CaptureFixture[str]) -> None:
    first, second = diverted_stdout(), diverted_stdout()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    sys.stdout.write("still diverted\n")
    second.__exit__(None, None, None)
    sys.stdout.write("back\n")
    captured = capfd.readouterr()
    assert captured.out == "back\n"
    assert captured.err == "still diverted\n"


HANGING = "import threading\nthreading.Event().wait()\n"

IN_A_LOOP = """\
import anyio
from openheim.plugins import supervision
from openheim.plugins.host import PluginHost
from openheim.plugins.policy import PluginPolicy
supervision.NOTICE_AFTER_SECS = 0.1
async def main():
    PluginHost(PluginPolicy(), report=print).load("tools", "x")
try:
    anyio.run(main)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize(
    ("arguments", "code", "stdout"),
    [(["-m", "openheim", "tools", "list"], 130, ""), (["-c", IN_A_LOOP], 0, "interrupted\n")],
    ids=["command", "event loop"],
)
def test_a_hanging_import_is_named_and_ends_at_ctrl_c(
    tmp_path: Path, arguments: list[str], code: int, stdout: str
) -> None:
    make_tool_distribution(tmp_path / "site", "oh-hang", "x", HANGING)
    process = subprocess.Popen(
        [sys.executable, *arguments],
        env=environment(tmp_path / "site"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that starts the tests in the background has interrupts ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert re.match(
            r"Plugin tools:x \(oh-hang 1\.0\) is being imported, for \d+ s now; Ctrl\+C ends the wait", line
        )
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, out) == (code, stdout)


def test_names_that_nobody_offers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry_points = {"openheim.providers": ["openai = m", "openai_compatible = m"], "openheim.tools": ["fs = m"]}
    make_distribution(tmp_path, "oh-some", entry_points=entry_points)
    host = host_over(tmp_path, monkeypatch).host
    with pytest.raises(PluginNotFoundError) as caught:
        host.load("providers", "anthropic")
    assert caught.value.message == (
        "No provider plugin named 'anthropic' is installed (installed: openai, openai_compatible)"
    )
    assert caught.value.hint == "try: pip install openheim-provider-anthropic"
    with pytest.raises(PluginNotFoundError, match=r"installed: fs\) \(did you mean fs\?\)"):
        host.load("tools", "fss")
    with pytest.raises(PluginNotFoundError, match=r"\(installed: none\)"):
        host.load("gates", "zzz")


def test_two_distributions_of_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_tool_distribution(tmp_path, "oh-two", "x", tool_plugin("two"), module="rival_two")
    make_tool_distribution(tmp_path, "oh-one", "x", tool_plugin("one"), module="rival_one")
    host = host_over(tmp_path, monkeypatch).host
    with pytest.raises(PluginConflictError) as caught:
        host.load("tools", "x")
    assert caught.value.message == "Toolset 'x' is offered by oh-one 1.0 and oh-two 1.0"
    assert caught.value.hint == 'choose one: [plugins.prefer] "tools.x" = "…"'
    assert [row.status for row in host.rows()] == ["conflict", "conflict"]
    assert not {"rival_one", "rival_two"} & set(sys.modules)

    preferring = host_over(tmp_path, monkeypatch, PluginPolicy(prefer={"tools.x": "oh-two"})).host
    assert preferring.load("tools", "x").distribution == "oh-two"
    assert [row.status for row in preferring.rows()] == ["disabled", "loaded"]
    assert "rival_one" not in sys.modules


def test_what_is_switched_off_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_tool_distribution(tmp_path, "oh-off", "x", "raise RuntimeError", module="switched_off")
    host = host_over(tmp_path, monkeypatch, PluginPolicy(disable=("tools.x",))).host
    with pytest.raises(PluginDisabledError) as caught:
        host.load("tools", "x")
    assert caught.value.message == "Plugin tools:x (oh-off 1.0) is disabled: switched off by [plugins] disable"
    assert caught.value.hint == "openheim plugins enable tools.x"
    safe = host_over(tmp_path, monkeypatch, PluginPolicy(safe_mode=True)).host
    with pytest.raises(PluginDisabledError, match="safe mode"):
        safe.load("tools", "x")
    assert "switched_off" not in sys.modules


def test_what_asks_for_another_core_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_tool_distribution(
        tmp_path, "oh-new", "x", "raise RuntimeError", module="for_later", requires=["openheim-core>=9"]
    )
    host = host_over(tmp_path, monkeypatch).host
    with pytest.raises(
        PluginIncompatibleError, match=r"tools:x \(oh-new 1\.0\).* asks for openheim-core>=9, and this is"
    ):
        host.load("tools", "x")
    assert "for_later" not in sys.modules
