"""Memory and descriptors stay as they are over many commands with long outputs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

CALLS, LONG_CALLS = 60, 10_000

CHILD = """
import json, os, sys, threading
from pathlib import Path
import anyio
from tests.tools_shell.calls import Shell

def resident_mb():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024 / 1024

async def main():
    shell = Shell(Path.cwd())
    command = "head -c 1000000 /dev/zero | tr '\\\\0' 'x'; echo; echo end"

    async def one():
        assert (await shell(command)).endswith("end\\n")

    async def some(count):
        for _ in range(0, count, 4):
            async with anyio.create_task_group() as group:
                for _ in range(4):
                    group.start_soon(one)

    await some(20)
    before = resident_mb(), len(os.listdir("/proc/self/fd")), threading.active_count()
    await some(int(sys.argv[1]))
    after = resident_mb(), len(os.listdir("/proc/self/fd")), threading.active_count()
    print(json.dumps([before, after]))

anyio.run(main)
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_many_commands_with_long_outputs(work: Path, long_counts: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(LONG_CALLS if long_counts else CALLS)],
        cwd=work,
        env={"PYTHONPATH": str(Path(__file__).parent.parent.parent), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (memory, descriptors, _), (memory_after, descriptors_after, threads_after) = json.loads(done.stdout)
    assert memory_after - memory < 20
    assert descriptors_after <= descriptors
    assert threads_after <= 2
