"""Processes that want the same session: ``python -m tests.store.contenders WORK FOLDER NUMBER ARGUMENT``.

Each says ``ready`` on its standard output, and begins when a line comes on its standard input.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from openheim.errors import SessionLockedError
from openheim.store import HistoryStore
from openheim.store.index import SessionIndex
from openheim.store.lease import Lease
from tests.store.stores import ID, user

CHECKOUT = Path(__file__).parents[2]

#: Seconds that a process may take to its end.
LIMIT = 300


def run_workers(work: str, folder: Path, count: int, argument: str) -> list[list[str]]:
    """Runs so many processes at once, and returns the lines that each printed. All have to succeed."""
    with workers(work, folder, count, argument) as processes:
        for process in processes:
            tell(process, "go")
        outputs = [process.communicate(timeout=LIMIT)[0] for process in processes]
        codes = [process.returncode for process in processes]
    assert codes == [0] * count, outputs
    return [output.splitlines() for output in outputs]


@contextmanager
def workers(work: str, folder: Path, count: int, argument: str = "") -> Iterator[list[subprocess.Popen[str]]]:
    """So many processes, ready to begin; killed in the end if they have not ended by themselves."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.store.contenders", work, str(folder), str(number), argument],
            cwd=CHECKOUT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(count)
    ]
    try:
        for process in processes:
            assert heard(process) == "ready"
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait(LIMIT)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()


def tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def heard(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


# --- in the processes ---


def say(line: str, out: IO[str] = sys.stdout) -> None:
    out.write(f"{line}\n")
    out.flush()


def taken(store: HistoryStore) -> Lease:
    """The lease, as soon as nobody else has it."""
    lease = store.lease(ID)
    while True:
        try:
            lease.acquire()
        except SessionLockedError as err:
            assert err.pid != os.getpid()
            time.sleep(0.0003)
        else:
            return lease


def append(store: HistoryStore, number: int, messages: int) -> None:
    log = store.log(ID)
    for count in range(messages):
        with taken(store):
            log.append(user("x" * 3000, message_id=f"{number}-{count}"))


def contend(store: HistoryStore) -> None:
    """For each line on standard input: tries to take the lease, says how that went, and gives it back on the next."""
    for line in sys.stdin:
        lease = store.lease(ID)
        try:
            lease.acquire()
        except SessionLockedError as err:
            say(f"locked {err.pid}")
        else:
            # Whoever else is in here at the same time cannot make this folder.
            inside = store.folder / "inside"
            inside.mkdir()
            say(f"held {os.getpid()}")
            sys.stdin.readline()
            inside.rmdir()
            lease.release()
            say("released")
        assert line


def enter_and_leave(store: HistoryStore, rounds: int) -> None:
    """Enters so many times, each time as soon as nobody else is inside."""
    inside = store.folder / "inside"
    counter = store.folder / "counter"
    for _ in range(rounds):
        with taken(store):
            inside.mkdir()
            counter.write_text(str(int(counter.read_text()) + 1))
            inside.rmdir()


def main() -> None:
    work, folder, number, argument = sys.argv[1:]
    store = HistoryStore(Path(folder))
    say("ready")
    if work != "contend":
        sys.stdin.readline()
    match work:
        case "append":
            append(store, int(number), int(argument))
        case "list":
            for _ in range(int(argument)):
                say(str(len(SessionIndex(store).page(limit=None).rows)))
        case "contend":
            contend(store)
        case "enter":
            enter_and_leave(store, int(argument))


if __name__ == "__main__":
    main()
