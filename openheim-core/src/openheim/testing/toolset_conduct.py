"""The part of the toolset contract about what calls do beside giving a result."""

from __future__ import annotations

import gc
import inspect
import os
import shutil
import threading
import time
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from openheim.agent.results import MIN_RESULT_LIMIT_BYTES
from openheim.testing.heartbeat import longest_pause
from openheim.testing.toolset_suite import (
    LONGEST_CALL_SECS,
    ToolsetSuite,
    is_refused,
    outcome,
    refusal,
    tree,
)
from openheim.testing.turn import FakeTurn
from openheim.tools import WRITING_KINDS, tool_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pytest

    from openheim.tools import Tool, ToolsContext

__all__ = ("ConductChecks",)

#: Stands in files outside the work directory, and must not come to light.
_SECRET = "THIS-STANDS-OUTSIDE"

_CALLS_AT_A_TIME = 8
#: How long a call may keep everything else on the event loop waiting, and how often it may fail to keep to that.
LONGEST_PAUSE_SECS = 0.25
_TRIES = 3
#: How long a slow call is looked at.
_SLOW_CALL_SECS = 0.3
#: How often it is looked whether something has gone away.
_LOOK_SECS = 0.02


class ConductChecks(ToolsetSuite):
    """Results are bounded, paths stay inside, cancelling works, and nothing is left behind."""

    async def test_results_fit_the_window(self, tools: dict[str, Tool], context: ToolsContext) -> None:
        """In a small window the core would cut a long result; only the tool itself can say how to get at the rest."""
        turn = FakeTurn(context.work_dir, settings=self.settings, result_limit_bytes=MIN_RESULT_LIMIT_BYTES)
        for tool, arguments in self._plain_calls(tools):
            calls = [arguments]
            for argument in self._paths_of(tool, arguments, turn):
                calls += [argument.put(path, arguments) for path in ("much", "much/long.txt", "much/line.txt")]
            for call in calls:
                if len(calls) > 1:
                    _lay_out_much(context.work_dir / "much", arguments)
                text = (await outcome(tool, call, turn)).text
                size = len(text.encode("utf-8", "surrogatepass"))
                assert size <= MIN_RESULT_LIMIT_BYTES, (
                    f"{tool.name} gave {size} bytes where turn.result_limit_bytes is {MIN_RESULT_LIMIT_BYTES}"
                )

    async def test_nothing_outside_is_touched(self, tools: dict[str, Tool], context: ToolsContext) -> None:
        """Whatever path a model may think of. Use ``turn.files``, which no path leads out of."""
        outside = context.work_dir.parent / "outside"
        turn = FakeTurn(context.work_dir, settings=self.settings)
        for tool, arguments in self._plain_calls(tools):
            for argument in self._paths_of(tool, arguments, turn):
                _lay_out_traps(context.work_dir, outside, arguments)
                before = tree(outside)
                for path in _paths_out(outside):
                    text = (await outcome(tool, argument.put(path, arguments), turn)).text
                    assert _SECRET not in text, f"{tool.name} reads outside the work directory, by the path {path!r}"
                    assert tree(outside) == before, f"{tool.name} changes files outside, by the path {path!r}"

    async def test_targets_are_canonical(self, tools: dict[str, Tool], context: ToolsContext) -> None:
        """One file has one target, however it is spelled: permission rules and the order of writes go by it."""
        turn = FakeTurn(context.work_dir, settings=self.settings)
        for tool, arguments in self._sampled(tools):
            if getattr(tool, "kind", "other") not in WRITING_KINDS:
                continue
            target = tool_target(tool, arguments, turn)
            assert target is not None, f"{tool.name} changes something and does not say what its sample call acts on"
            for argument in self._paths_of(tool, arguments, turn):
                path = argument.of(arguments)
                if path is None or os.path.isabs(path):
                    continue
                for spelled in (f"./{path}", f"x/../{path}", str(context.work_dir / path)):
                    assert tool_target(tool, argument.put(spelled, arguments), turn) == target, (
                        f"{tool.name} gives another target for {spelled!r} than for {path!r}, which is the same"
                    )

    async def test_unknown_arguments_do_no_harm(self, tools: dict[str, Tool], turn: FakeTurn) -> None:
        """Models make up arguments. The core refuses those of tools that have any; the others see them."""
        for tool, arguments in self._plain_calls(tools):
            await is_refused(tool, {**arguments, "made_up_argument": 1}, turn)

    async def test_calls_at_a_time_do_not_mix(self, tools: dict[str, Tool], context: ToolsContext) -> None:
        for tool, arguments in self._sampled(tools, read_only=True):
            refusals: list[object] = []

            async def call(tool: Tool = tool, arguments: dict[str, Any] = arguments, to: list[Any] = refusals) -> None:
                to.append(await refusal(tool, dict(arguments), FakeTurn(context.work_dir, settings=self.settings)))

            async with anyio.create_task_group() as group:
                for _ in range(_CALLS_AT_A_TIME):
                    group.start_soon(call)
            failed = [err for err in refusals if err is not None]
            assert not failed, f"of {_CALLS_AT_A_TIME} calls of {tool.name} at a time {len(failed)} failed: {failed[0]}"

    async def test_the_event_loop_goes_on(self, tools: dict[str, Tool], context: ToolsContext) -> None:
        """One call that holds the loop up holds up every session, and cannot be cancelled. Blocking work belongs into a
        thread (``anyio.to_thread``).
        """
        calls: list[tuple[Tool, dict[str, Any], float]] = [
            (tool, arguments, LONGEST_CALL_SECS) for tool, arguments in self._plain_calls(tools)
        ]
        calls += [(tools[name], dict(call), _SLOW_CALL_SECS) for name, call in self.slow_calls.items()]
        for tool, arguments, limit_secs in calls:
            turn = FakeTurn(context.work_dir, settings=self.settings)

            async def call(
                tool: Tool = tool, arguments: Any = arguments, turn: FakeTurn = turn, limit: float = limit_secs
            ) -> None:
                with anyio.move_on_after(limit):
                    await is_refused(tool, dict(arguments), turn)

            # The first call may import, and a machine may stop for a moment: only what is so each time counts.
            pauses: list[float] = []
            while len(pauses) < _TRIES and min(pauses, default=inf) > LONGEST_PAUSE_SECS:
                pauses.append(await longest_pause(call))
            assert min(pauses) <= LONGEST_PAUSE_SECS, (
                f"{tool.name} holds up the event loop for {min(pauses):.1f} s; have a thread do what blocks"
            )

    async def test_cancelling_ends_a_call(self, tools: dict[str, Tool], context: ToolsContext) -> None:
        calls = [*self._sampled(tools), *((tools[name], dict(call)) for name, call in self.slow_calls.items())]
        for tool, arguments in calls:
            turn = FakeTurn(context.work_dir, settings=self.settings)
            children = _children()
            async with anyio.create_task_group() as group:
                group.start_soon(_call_and_forget, tool, arguments, turn)
                # Far enough for it to have begun.
                await anyio.sleep(0.05)
                turn.cancel()
                group.cancel_scope.cancel()
                begin = time.monotonic()
            took = time.monotonic() - begin
            assert took < self.patience_secs, f"{tool.name} went on for {took:.1f} s after it was cancelled"
            left = await self._left(_children, children)
            assert not left, f"{tool.name} was cancelled and left a process behind: {sorted(left)}"

    async def test_nothing_is_left_behind(self, tools: dict[str, Tool], context: ToolsContext) -> None:
        """Descriptors, threads and processes, once the first call has set up what the toolset keeps."""
        for tool, arguments in self._sampled(tools):
            turn = FakeTurn(context.work_dir, settings=self.settings)
            await is_refused(tool, dict(arguments), turn)
            gc.collect()
            before = {what: count() for what, count in _POSSESSIONS.items()}
            for _ in range(3):
                await is_refused(tool, dict(arguments), turn)
            gc.collect()
            for what, count in _POSSESSIONS.items():
                left = await self._left(count, before[what])
                assert not left, f"3 calls of {tool.name} left {what} behind: {', '.join(sorted(left))}"

    async def test_calls_print_nothing(
        self, tools: dict[str, Tool], turn: FakeTurn, capfd: pytest.CaptureFixture[str]
    ) -> None:
        """Standard output may be a protocol's pipe; for people there is ``turn.progress``."""
        for tool, arguments in self._plain_calls(tools):
            capfd.readouterr()
            await is_refused(tool, arguments, turn)
            printed = capfd.readouterr().out
            assert not printed, f"{tool.name} prints {printed[:80]!r}"

    async def test_sessions_can_be_closed(self, tools: dict[str, Tool], turn: FakeTurn) -> None:
        """``close_session``, where a tool has it, comes back: more than once, and for sessions it has nothing of."""
        for name, tool in tools.items():
            close = getattr(tool, "close_session", None)
            if close is None:
                continue
            assert inspect.iscoroutinefunction(close), f"close_session of {name} is not async"
            if (sample := self._samples.get(name)) is not None:
                await is_refused(tool, dict(sample), turn)
            for session_id in (turn.session_id, turn.session_id, "11111111-0000-4000-8000-000000000000"):
                try:
                    with anyio.fail_after(LONGEST_CALL_SECS):
                        await close(session_id)
                except Exception as err:
                    raise AssertionError(f"close_session of {name} raised {type(err).__name__}: {err}") from err

    async def _left(self, count: Callable[[], set[str]], before: set[str]) -> set[str]:
        """What there is now and was not before, once there has been time for it to go away."""
        for _ in range(int(self.patience_secs / _LOOK_SECS)):
            if not count() - before:
                break
            await anyio.sleep(_LOOK_SECS)
        return count() - before


async def _call_and_forget(tool: Tool, arguments: dict[str, Any], turn: FakeTurn) -> None:
    await is_refused(tool, arguments, turn)


def _words(arguments: dict[str, Any]) -> str:
    """What a sample call may look for."""
    return " ".join(value for value in arguments.values() if isinstance(value, str))


def _lay_out_much(folder: Path, arguments: dict[str, Any]) -> None:
    """A folder with more in it than a small window has room for."""
    if not folder.is_dir():
        folder.mkdir()
        for number in range(200):
            (folder / f"a file with a long name, so that a few hundred of them make a long list, {number:04}").touch()
    line = f"{_words(arguments)} and more of it\n"
    (folder / "long.txt").write_text(line * 3000, encoding="utf-8")
    (folder / "line.txt").write_text(line.replace("\n", " ") * 3000, encoding="utf-8")


def _lay_out_traps(work_dir: Path, outside: Path, arguments: dict[str, Any]) -> None:
    """Files outside, and links and a pipe inside."""
    shutil.rmtree(outside, ignore_errors=True)
    (outside / "folder").mkdir(parents=True)
    for path in (outside / "secret.txt", outside / "folder" / "secret.txt"):
        path.write_text(f"{_words(arguments)} {_SECRET}\n", encoding="utf-8")
    for name, target in (
        ("link-to-file", "../outside/secret.txt"),
        ("link-to-folder", str(outside)),
        ("link-to-nothing", "../outside/new.txt"),
        ("link-to-link", "link-to-folder"),
    ):
        (work_dir / name).unlink(missing_ok=True)
        (work_dir / name).symlink_to(target)
    if hasattr(os, "mkfifo") and not os.path.lexists(work_dir / "pipe"):
        os.mkfifo(work_dir / "pipe")


def _paths_out(outside: Path) -> Iterable[str]:
    secret = str(outside / "secret.txt")
    yield from ("../outside", "../outside/secret.txt", str(outside), secret, f"/{secret}", f"/proc/self/root{secret}")
    yield from ("nowhere/../../outside/secret.txt", "../outside/new.txt", str(outside / "new" / "new.txt"))
    yield from ("link-to-file", "link-to-folder", "link-to-folder/secret.txt", "link-to-folder/folder/../secret.txt")
    yield from ("link-to-link/secret.txt", "link-to-nothing", "link-to-folder/new.txt", "link-to-folder/new/new.txt")
    yield from ("pipe", "/dev/zero", "/dev/stdin", "/proc/self/mem", "/proc/kmsg")


# --- what a process has ---


def _descriptors() -> set[str]:
    """Each with what it stands for. Where that cannot be known, nothing is."""
    found = set()
    for number in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():
        try:
            found.add(f"{number} ({os.readlink(f'/proc/self/fd/{number}')})")
        except OSError:
            continue  # The one for this listing.
    return found


def _threads() -> set[str]:
    # The threads that blocking work is given to stay, for the next call.
    return {thread.name for thread in threading.enumerate() if not thread.name.startswith("AnyIO worker")}


def _children() -> set[str]:
    children: set[str] = set()
    for path in Path("/proc/self/task").glob("*/children"):
        try:
            children.update(path.read_text().split())
        except OSError:
            continue  # The thread has ended.
    return children


_POSSESSIONS = {"descriptors": _descriptors, "threads": _threads, "processes": _children}
