"""The lease of a session: who gets it, from whom it may be taken, and that it is never had twice."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from openheim.errors import SessionBusyError, SessionLockedError, StorageError
from openheim.store import HistoryStore
from openheim.store.lease import FOREIGN_SECS, UNREADABLE_SECS, Lease, owner_of
from openheim.store.process import this_process
from tests.store.contenders import heard, run_workers, tell, workers
from tests.store.stores import ID, texts, write_session

HERE = this_process()


@pytest.fixture
def lease(store: HistoryStore) -> Lease:
    return store.lease(ID)


@pytest.fixture
def dead_pid() -> int:
    """The number of a process that has ended and been waited for."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(30)
    return process.pid


def write_lock(path: Path, *, age_secs: float = 0, **named: Any) -> None:
    """A lock file as another process left it."""
    path.write_text(json.dumps({"pid": 1, "hostname": HERE.host, "acquired_at": "", "process_start": None} | named))
    set_age(path, age_secs)


def set_age(path: Path, secs: float) -> None:
    modified = path.stat().st_mtime - secs
    os.utime(path, (modified, modified))


# --- taking and giving back ---


def test_the_file_names_its_holder_and_goes_with_it(lease: Lease) -> None:
    lease.acquire()
    assert lease.held
    named = json.loads(lease.path.read_text())
    assert (named["pid"], named["hostname"]) == (os.getpid(), HERE.host)
    assert {"acquired_at", "process_start"} <= set(named)
    assert owner_of(lease.path) == HERE
    assert oct(lease.path.stat().st_mode & 0o777) == "0o600"
    lease.release()
    assert not lease.path.exists()
    assert not lease.held
    lease.release()


def test_taking_it_again_renews_it(lease: Lease) -> None:
    lease.acquire()
    set_age(lease.path, 1000)
    before = lease.path.stat().st_mtime
    lease.acquire()
    assert lease.path.stat().st_mtime > before
    set_age(lease.path, 1000)
    lease.refresh()
    assert lease.path.stat().st_mtime > before
    lease.release()


def test_a_second_turn_in_this_process_is_refused_and_takes_nothing_away(store: HistoryStore) -> None:
    first, second = store.lease(ID), store.lease(ID)
    first.acquire()
    with pytest.raises(SessionBusyError):
        second.acquire()
    second.release()
    assert owner_of(first.path) == HERE
    first.release()
    with second:
        assert second.held
    assert not second.path.exists()


def test_one_that_this_process_left_is_its_own(store: HistoryStore) -> None:
    write_lock(store.lock_path(ID), pid=os.getpid())
    with store.lease(ID):
        pass
    lost = store.lease(ID)
    lost.acquire()
    del lost
    with store.lease(ID):
        pass


def test_leases_of_different_sessions_do_not_meet(store: HistoryStore) -> None:
    with store.lease(ID), store.lease("00000000-0000-4000-8000-000000000000"):
        pass


def test_reading_takes_no_lease(store: HistoryStore) -> None:
    write_session(store, ID, title="t")
    write_lock(store.lock_path(ID), pid=os.getppid())
    assert texts(store) == []
    assert store.load(ID).meta.title == "t"
    assert owner_of(store.lock_path(ID)) is not None


# --- others ---


def test_a_living_process_is_named_and_keeps_it(store: HistoryStore) -> None:
    with workers("contend", store.folder, 1) as (other,):
        tell(other, "try")
        assert heard(other) == f"held {other.pid}"
        with pytest.raises(SessionLockedError) as caught:
            store.lease(ID).acquire()
        tell(other, "release")
        assert heard(other) == "released"
    err = caught.value
    assert (err.pid, err.host, err.session_id) == (other.pid, HERE.host, ID)
    assert f"process {other.pid} on {HERE.host}" in str(err)
    assert not store.lock_path(ID).exists()


def test_a_killed_process_has_lost_it_also_before_it_is_waited_for(
    store: HistoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    with workers("contend", store.folder, 1) as (other,):
        tell(other, "try")
        assert heard(other) == f"held {other.pid}"
        other.send_signal(signal.SIGKILL)
        assert heard(other) == ""  # Its end of the pipe is closed: it has ended, and nobody has waited for it.
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
        with store.lease(ID):
            assert owner_of(store.lock_path(ID)) == HERE
    assert f"process {other.pid}" in caplog.text


def test_a_dead_process_has_lost_it(lease: Lease, dead_pid: int) -> None:
    write_lock(lease.path, pid=dead_pid)
    with lease:
        assert owner_of(lease.path) == HERE


@pytest.mark.skipif(HERE.start is None, reason="this system does not say when a process started")
def test_a_pid_that_is_used_again_holds_nothing(store: HistoryStore) -> None:
    with workers("contend", store.folder, 1) as (other,):
        tell(other, "try")
        heard(other)
        named = json.loads(store.lock_path(ID).read_text())
        boot = named["process_start"].partition("/")[0]
        write_lock(store.lock_path(ID), **named | {"process_start": f"{boot}/1"})
        with store.lease(ID):
            pass
        tell(other, "release")
        assert heard(other) == "released"


@pytest.mark.skipif("/" not in (HERE.start or ""), reason="this system does not name its boots")
def test_a_holder_from_before_a_restart_of_the_machine_has_lost_it(lease: Lease) -> None:
    write_lock(lease.path, pid=os.getppid(), process_start="11111111-2222-3333-4444-555555555555/100")
    with lease:
        pass


@pytest.mark.parametrize("start", [None, 123456, "no form that is known"])
def test_what_another_program_wrote_of_its_start_is_not_held_against_it(lease: Lease, start: object) -> None:
    write_lock(lease.path, pid=os.getppid(), process_start=start)
    if isinstance(start, str):
        with lease:
            pass
        return
    with pytest.raises(SessionLockedError):
        lease.acquire()


def test_another_machine_keeps_it_for_half_an_hour_after_the_last_renewal(lease: Lease) -> None:
    write_lock(lease.path, pid=99, hostname="elsewhere", age_secs=FOREIGN_SECS - 60)
    with pytest.raises(SessionLockedError) as caught:
        lease.acquire()
    assert (caught.value.pid, caught.value.host) == (99, "elsewhere")
    set_age(lease.path, 120)
    with lease:
        assert owner_of(lease.path) == HERE


def test_a_time_far_in_the_future_locks_nothing_for_good(lease: Lease) -> None:
    write_lock(lease.path, pid=99, hostname="elsewhere", age_secs=-10 * FOREIGN_SECS)
    with lease:
        pass


@pytest.mark.skipif(HERE.table is None, reason="this system has one table of processes")
def test_a_process_of_another_container_may_be_alive(lease: Lease, dead_pid: int) -> None:
    write_lock(lease.path, pid=dead_pid, process_start=HERE.start, pid_namespace="pid:[1]")
    with pytest.raises(SessionLockedError):
        lease.acquire()
    set_age(lease.path, FOREIGN_SECS + 60)
    with lease:
        pass


UNREADABLE = (
    b"",
    b"{",
    b"[]",
    b"null",
    b"\xff",
    b'{"pid": 1}',
    b'{"pid": true, "hostname": "h"}',
    b'{"pid": -1, "hostname": "h"}',
    b'{"pid": 99999999999, "hostname": "h"}',
)


@pytest.mark.parametrize("content", UNREADABLE)
def test_a_file_that_cannot_be_read_is_left_for_ten_seconds(lease: Lease, content: bytes) -> None:
    lease.path.write_bytes(content)
    with pytest.raises(SessionLockedError) as caught:
        lease.acquire()
    assert (caught.value.pid, caught.value.host) == (0, "unknown")
    set_age(lease.path, UNREADABLE_SECS + 1)
    with lease:
        assert owner_of(lease.path) == HERE


def test_one_that_cannot_be_written_leaves_nothing(lease: Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: 1)
        with pytest.raises(StorageError, match="No space left"):
            lease.acquire()
    assert not lease.path.exists()
    with lease:
        assert owner_of(lease.path) == HERE


def test_the_guard_is_found_anew_when_its_folder_is(store: HistoryStore) -> None:
    with store.lease(ID):
        pass
    shutil.rmtree(store.folder)
    store.folder.mkdir()
    with store.lease(ID):
        assert (store.folder / ".guard").exists()


FORKED = """
import os, sys
from openheim.store import locking
from openheim.store.guard import Guard

locking.PATIENCE_SECS = 0.02
guard = Guard(sys.argv[1])
with guard.held():
    pass
mine, childs = os.pipe(), os.pipe()
if os.fork() == 0:
    os.read(childs[0], 1)
    try:
        with guard.held():
            answer = b"free"
    except TimeoutError:
        answer = b"held"
    os.write(mine[1], answer)
    os._exit(0)
with guard.held():
    os.write(childs[1], b"x")
    print(os.read(mine[0], 9).decode())
"""


def test_a_forked_child_locks_for_itself(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FORKED, str(tmp_path)], capture_output=True, text=True, timeout=30)
    assert done.stdout == "held\n", done.stderr


def test_one_that_was_taken_meanwhile_is_left_alone(lease: Lease) -> None:
    lease.acquire()
    write_lock(lease.path, pid=99, hostname="elsewhere")
    with pytest.raises(SessionLockedError, match="elsewhere"):
        lease.refresh()
    lease.release()
    owner = owner_of(lease.path)
    assert owner is not None
    assert owner.host == "elsewhere"


def test_one_that_was_removed_by_hand_is_made_again(lease: Lease) -> None:
    lease.acquire()
    lease.path.unlink()
    lease.refresh()
    assert owner_of(lease.path) == HERE
    lease.release()


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot use the lease"):
        Lease(tmp_path / "nowhere" / "x.lock", ID).acquire()


def test_a_process_that_was_stopped_in_the_middle_of_it_stops_nobody_for_long(
    lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openheim.store.locking.PATIENCE_SECS", 0.02)
    with lease:
        pass
    with open(lease.path.parent / ".guard", "rb") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        with pytest.raises(StorageError, match="another process holds it"):
            lease.acquire()
    with lease:
        pass


@pytest.mark.parametrize("failure", [TimeoutError, PermissionError])
@pytest.mark.parametrize("same", [True, False])
def test_one_that_could_not_be_given_back_is_taken_again(
    lease: Lease, store: HistoryStore, failure: type[OSError], same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(descriptor: int) -> Any:
        raise failure(errno.EAGAIN, "no way")

    lease.acquire()
    with monkeypatch.context() as patch:
        patch.setattr("openheim.store.guard.exclusive", failing)
        lease.release()
    assert lease.path.exists()
    following = lease if same else store.lease(ID)
    following.acquire()
    with pytest.raises(SessionBusyError):
        store.lease(ID).acquire()
    following.release()
    assert not lease.path.exists()


def test_where_there_are_no_locks_it_is_taken_all_the_same(lease: Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", refuse)
    with lease:
        assert owner_of(lease.path) == HERE
        write_lock(lease.path, pid=99, hostname="elsewhere")
    with pytest.raises(SessionLockedError):
        lease.acquire()


def refuse(*_arguments: object) -> None:
    raise OSError(errno.ENOLCK, "No locks available")


# --- contention ---


@pytest.mark.slow
def test_eight_processes_never_hold_it_at_once(store: HistoryStore, long_counts: bool) -> None:
    """Each enters as often as it can; inside there is room for one, and every entry is counted."""
    rounds, processes = (500 if long_counts else 40), 8
    (store.folder / "counter").write_text("0")
    run_workers("enter", store.folder, processes, str(rounds))
    assert (store.folder / "counter").read_text() == str(rounds * processes)
    assert not store.lock_path(ID).exists()


@pytest.mark.slow
def test_eight_processes_and_a_stale_lease(store: HistoryStore, dead_pid: int, long_counts: bool) -> None:
    """All of them find it at once, exactly one takes it over, and all others are told by whom."""
    stale = [
        lambda: write_lock(store.lock_path(ID), pid=dead_pid),
        lambda: write_lock(store.lock_path(ID), hostname="elsewhere", age_secs=FOREIGN_SECS + 60),
        lambda: (store.lock_path(ID).write_bytes(b""), set_age(store.lock_path(ID), UNREADABLE_SECS + 1)),
    ]
    with workers("contend", store.folder, 8) as processes:
        for number in range(500 if long_counts else 40):
            stale[number % len(stale)]()
            for process in processes:
                tell(process, "try")
            answers = {process.pid: heard(process) for process in processes}
            holders = [pid for pid, answer in answers.items() if answer == f"held {pid}"]
            assert len(holders) == 1, answers
            refused = {answer for pid, answer in answers.items() if pid != holders[0]}
            assert refused == {f"locked {holders[0]}"}, answers
            holder = next(process for process in processes if process.pid == holders[0])
            tell(holder, "release")
            assert heard(holder) == "released"
            assert not store.lock_path(ID).exists()


@pytest.mark.slow
def test_killed_holders_lock_nobody_out(store: HistoryStore, long_counts: bool) -> None:
    """Processes that are killed while they take, hold and give back leases leave nothing that the next one minds."""
    (store.folder / "counter").write_text("0")
    for number in range(50 if long_counts else 5):
        with workers("enter", store.folder, 4, "1000000") as processes:
            for process in processes:
                tell(process, "go")
            # Wait until they are in the middle of it.
            target = int((store.folder / "counter").read_text() or 0) + 20 + number
            while int((store.folder / "counter").read_text() or 0) < target:
                assert all(process.poll() is None for process in processes)
        inside = store.folder / "inside"
        if inside.exists():
            inside.rmdir()
        (store.folder / "counter").write_text("0")
        with store.lease(ID):
            pass
