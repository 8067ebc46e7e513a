"""``openheim plugins check``: every way in which a plugin can spoil a process, seen from outside of it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.distributions import (
    environment,
    make_distribution,
    make_tool_distribution,
    run_openheim,
    tool_plugin,
)

KEYS = ["kind", "name", "distribution", "ok", "load_ms", "error", "warnings"]


def check(*arguments: str, folders: list[Path], code: int | None = None, **variables: str) -> dict[str, dict[str, Any]]:
    done = run_openheim("plugins", "check", "--json", *arguments, folders=folders, **variables)
    results = json.loads(done.stdout)
    assert all(list(result) == KEYS for result in results)
    assert done.returncode == (0 if all(result["ok"] for result in results) else 1) if code is None else code
    return {result["distribution"]: result for result in results}


def check_one(source: str, tmp_path: Path, *arguments: str, requires: tuple[str, ...] = ()) -> dict[str, Any]:
    make_tool_distribution(tmp_path / "site", "oh-it", "x", source, module="xmod", requires=requires)
    return check("oh-it", *arguments, folders=[tmp_path / "site"])["oh-it"]


def test_a_good_plugin(tmp_path: Path) -> None:
    result = check_one(tool_plugin(), tmp_path)
    assert result["ok"]
    assert result["load_ms"] > 0
    assert result["error"] is None
    assert result["warnings"] == []


SCHEMA = "\na_tool._parameters = {}\n"
HOOK = "\n        return [a_tool]"


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("import no_such_library", "ModuleNotFoundError: no_such_library (site/xmod.py:1)"),
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("import os\nos._exit(0)", "it ended the process with exit code 0"),
        ("import os, sys\nsys.stderr.write('last words\\n')\nos._exit(7)", "exit code 7: last words"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "by signal SIGKILL"),
        ("plugin = 3", "it has no hook implementations"),
        (tool_plugin().replace("    def openheim_tools", "    async def openheim_tools"), "openheim_tools is async"),
        (tool_plugin().replace("settings, context", "settings, contexts"), "openheim_tools takes contexts"),
        (tool_plugin().replace("    @hookimpl\n", ""), "openheim_tools is not marked with @hookimpl"),
        (tool_plugin().replace(HOOK, "\n        raise ValueError('bad hook')"), "ValueError: bad hook"),
        (tool_plugin().replace(HOOK, "\n        return [7]"), "int object is no tool"),
        (tool_plugin() + "\n_Plugin.Settings = 3\n", "its Settings is no pydantic model"),
        (tool_plugin() + SCHEMA.format("{'properties': {}}"), "the parameters of tool 'a_tool' are no JSON Schema"),
        (
            tool_plugin() + SCHEMA.format("{'type': 'object', 'enum': {1}}"),
            "'a_tool' cannot be sent as JSON: TypeError",
        ),
        (
            tool_plugin() + SCHEMA.format("{'type': 'object', 'maximum': float('nan')}"),
            "'a_tool' cannot be sent as JSON: ValueError",
        ),
    ],
)
def test_what_fails(tmp_path: Path, source: str, error: str) -> None:
    result = check_one(source, tmp_path)
    assert not result["ok"]
    assert error in result["error"]


SETTINGS = """
from pydantic import BaseModel
class Settings(BaseModel{forbid}):
    {field}
_Plugin.Settings = Settings
"""


@pytest.mark.parametrize(
    ("source", "warning"),
    [
        ("print('hello\\nthere')\n" + tool_plugin(), "it wrote to standard output when it was imported: 'hello there'"),
        ("import os\nos.write(1, b'raw')\n" + tool_plugin(), "when it was imported: 'raw'"),
        ("import os\nos.system('echo child')\n" + tool_plugin(), "when it was imported: 'child'"),
        (
            tool_plugin().replace(HOOK, "\n        print('late')" + HOOK),
            "it wrote to standard output when it was asked for its tools: 'late'",
        ),
        (
            tool_plugin() + "\n_Plugin.openheim_observe = lambda self, event: None\n",
            "openheim_observe is not marked with @hookimpl, so it is never called",
        ),
        (tool_plugin() + SETTINGS.format(forbid="", field="x: int = 1"), 'should have extra="forbid"'),
        (
            tool_plugin() + SETTINGS.format(forbid=", extra='forbid'", field="url: str"),
            "its tools were not tried: [tools.x] url: must be set",
        ),
    ],
)
def test_what_is_warned_of(tmp_path: Path, source: str, warning: str) -> None:
    result = check_one(source, tmp_path)
    assert result["ok"], result["error"]
    (line,) = result["warnings"]
    assert warning in line


def test_the_users_settings_are_used(tmp_path: Path, own_environment: Path) -> None:
    own_environment.mkdir()
    (own_environment / "config.toml").write_text('[tools.x]\nurl = "here"\n')
    source = tool_plugin().replace(HOOK, "\n        raise ValueError(settings.url)")
    result = check_one(source + SETTINGS.format(forbid=", extra='forbid'", field="url: str"), tmp_path)
    assert "ValueError: here" in result["error"]


def test_a_plugin_that_hangs_and_leaves_a_child(tmp_path: Path) -> None:
    """Both are gone when the check is over, and nobody waits for the pipe that the child holds."""
    pid_file = tmp_path / "pid"
    source = (
        "import subprocess, sys, threading\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import threading; threading.Event().wait()'])\n"
        f"open({str(pid_file)!r}, 'w').write(str(child.pid))\n"
        "threading.Event().wait()\n"
    )
    result = check_one(source, tmp_path, "--timeout", "3")
    assert result["error"] == "it was not done after 3 s"
    assert_gone(int(pid_file.read_text()))


def test_a_child_that_is_left_behind_is_ended(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    source = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import threading; threading.Event().wait()'])\n"
        f"open({str(pid_file)!r}, 'w').write(str(child.pid))\n"
    )
    assert check_one(source + tool_plugin(), tmp_path)["ok"]
    assert_gone(int(pid_file.read_text()))


def test_a_thread_that_runs_on_does_not_hold_the_check(tmp_path: Path) -> None:
    source = "import threading\nthreading.Thread(target=threading.Event().wait).start()\n"
    assert check_one(source + tool_plugin(), tmp_path)["ok"]


def assert_gone(pid: int) -> None:
    """The process is dead or dying: it ends without anybody's doing, and its descriptor says when."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([descriptor], [], [], 10)[0]
    finally:
        os.close(descriptor)


def test_much_noise_is_not_kept(tmp_path: Path) -> None:
    source = "import os, sys\nfor _ in range(3000):\n    sys.stderr.write('noise' * 1000 + '\\n')\nos._exit(9)\n"
    result = check_one(source, tmp_path)
    assert "exit code 9: noise" in result["error"]


def test_each_plugin_is_tried_by_itself(tmp_path: Path) -> None:
    site = tmp_path / "site"
    for name in ("oh-a", "oh-b", "oh-c", "oh-d"):
        make_tool_distribution(site, name, name[-1])
    make_tool_distribution(site, "oh-bad", "bad", "raise RuntimeError('broken')")
    make_tool_distribution(site, "oh-off", "off", "raise RuntimeError('broken')")
    make_tool_distribution(site, "oh-later", "later", requires=["openheim-core>=9"])
    make_tool_distribution(site, "oh-same1", "same")
    make_tool_distribution(site, "oh-same2", "same")
    results = check(folders=[site], code=1, OPENHEIM_PLUGINS_DISABLE="oh-off")
    ours = {name: result for name, result in results.items() if name.startswith("oh-")}
    assert [name for name, result in ours.items() if result["ok"]] == ["oh-a", "oh-b", "oh-c", "oh-d"]
    assert list(ours) == ["oh-a", "oh-b", "oh-bad", "oh-c", "oh-d", "oh-later", "oh-same1", "oh-same2"]
    assert "openheim-core>=9" in ours["oh-later"]["error"]
    assert ours["oh-same1"]["error"] == "also offered by oh-same2 1.0; choose one in [plugins.prefer]"
    assert results["openheim-core"]["ok"]
    # By name it is tried even if it is switched off.
    assert not check("tools.off", folders=[site], code=1, OPENHEIM_PLUGINS_DISABLE="oh-off")["oh-off"]["ok"]


def test_the_table_and_the_exit_code(tmp_path: Path) -> None:
    site = tmp_path / "site"
    make_tool_distribution(site, "oh-good", "good", "print('hello')\n" + tool_plugin())
    make_tool_distribution(site, "oh-bad", "bad", "import no_such_library")
    done = run_openheim("plugins", "check", folders=[site])
    assert done.returncode == 1
    rows = {line.split()[1]: line for line in done.stdout.splitlines()}
    assert rows["tools.good"].startswith("ok ")
    assert rows["tools.bad"].startswith("failed ")
    assert "no_such_library" in rows["tools.bad"]
    assert done.stderr.startswith("warning: tools.good of oh-good: it wrote to standard output")
    assert run_openheim("plugins", "check", "oh-good", folders=[site]).returncode == 0


def test_other_kinds_are_loaded_and_not_called(tmp_path: Path) -> None:
    site = tmp_path / "site"
    source = "from openheim import hookimpl\n@hookimpl\ndef openheim_create_provider(kind):\n    raise RuntimeError\n"
    make_distribution(site, "oh-p", entry_points={"openheim.providers": ["p = pmod"]}, modules={"pmod": source})
    make_distribution(site, "oh-q", entry_points={"openheim.embeddings": ["p = pmod"]})
    assert check("oh-p", folders=[site])["oh-p"]["ok"]
    assert "does not implement openheim_create_embedder" in check("oh-q", folders=[site])["oh-q"]["error"]


def test_the_working_directory_is_no_place_to_import_from(tmp_path: Path) -> None:
    site = tmp_path / "site"
    make_tool_distribution(site, "oh-it", "x", "import only_in_the_project\n" + tool_plugin())
    (tmp_path / "only_in_the_project.py").write_text("")
    assert "only_in_the_project" in check("oh-it", folders=[site])["oh-it"]["error"]


@pytest.mark.parametrize("arguments", [["--timeout", "0"], ["--timeout", "soon"], ["oh-none"]])
def test_wrong_calls(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "site").mkdir()
    done = run_openheim("plugins", "check", *arguments, folders=[tmp_path / "site"])
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1


def test_ctrl_c_ends_the_children(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    source = f"import os, threading\nopen({str(fifo)!r}, 'w').write(str(os.getpid()))\nthreading.Event().wait()\n"
    make_tool_distribution(tmp_path / "site", "oh-hang", "x", source)
    process = subprocess.Popen(
        [sys.executable, "-m", "openheim", "plugins", "check", "oh-hang"],
        env=environment(tmp_path / "site"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that starts the tests in the background has interrupts ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        pid = int(fifo.read_text())  # The other end is opened when the import is under way.
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, out, err) == (130, "", "")
    assert_gone(pid)
