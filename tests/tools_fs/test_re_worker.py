"""The process that matches with Python's own regular expressions: it ends, whatever becomes of who started it."""

from __future__ import annotations

import json
import select
import signal
import subprocess
import sys

from openheim_tools_fs import re_worker

WAIT_SECS = 20

#: It takes longer than anybody waits.
ENDLESS = json.dumps({"pattern": "^(a+)+b?$", "ignore_case": False}).encode() + b"\n"
TEXT = b"a" * 60 + b"!"


def test_it_ends_with_the_process_that_started_it() -> None:
    """In the midst of a match, where it does not look at its input; which is open still, since the test holds it."""
    starter = (
        "import os, subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-I', '-S', sys.argv[1], str(os.getpid())]).wait()\n"
    )
    command = [sys.executable, "-I", "-S", "-c", starter, re_worker.__file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        parent.stdin.write(ENDLESS + re_worker.NUMBER.pack(len(TEXT)) + TEXT)
        parent.stdin.flush()
        assert json.loads(parent.stdout.readline()) == {}
        parent.kill()
        # Both hold the other end of this pipe: it ends when both are gone.
        ready, _, _ = select.select([parent.stdout], [], [], WAIT_SECS)
        assert ready
        assert parent.stdout.read() == b""


def test_a_block_has_a_limit() -> None:
    program = (
        "import sys\n"
        "from openheim_tools_fs import re_worker\n"
        "re_worker.LIMIT_SECS = 0.1\n"
        "re_worker.serve(sys.stdin.buffer, sys.stdout.buffer)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=ENDLESS + re_worker.NUMBER.pack(len(TEXT)) + TEXT,
        capture_output=True,
        timeout=WAIT_SECS,
        check=False,
    )
    assert done.returncode == -signal.SIGALRM
    assert json.loads(done.stdout) == {}
