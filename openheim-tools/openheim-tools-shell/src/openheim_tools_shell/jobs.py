"""Commands in the background: jobs of a session, and the tools that look after them."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any

import anyio

from openheim import TextBlock, ToolError, ToolResult
from openheim_tools_shell.process import CommandProcess
from openheim_tools_shell.results import failed_start, how_it_ended, leftovers, output_text
from openheim_tools_shell.schemas import JOB_KILL, JOB_OUTPUT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openheim import Turn
    from openheim.tools import Replay, ToolKind
    from openheim_tools_shell.launch import Launch

__all__ = ("Job", "JobKill", "JobOutput", "Jobs")

#: Jobs of one session that run at a time, and ended ones whose output is kept for a last look.
MAX_RUNNING = 16
MAX_ENDED = 16

#: Seconds that a job has to start, and is then watched before the call that started it returns: most mistakes show at
#: once.
START_SECS = 5.0
FIRST_LOOK_SECS = 0.2

_ADVICE = "ask more often, or start it with its output in a file (> out.log 2>&1) and read or search that"


class Job:
    """One command in the background."""

    def __init__(self, job_id: str, launch: Launch) -> None:
        self.id = job_id
        self.launch = launch
        self.started = time.monotonic()
        self.process = CommandProcess(launch)

    @property
    def running(self) -> bool:
        return self.process.ending is None

    @property
    def failed(self) -> bool:
        """Whether it has ended otherwise than it should."""
        ending = self.process.ending
        return ending is not None and (ending.failure is not None or ending.status != 0)

    def state(self) -> str:
        """``running for 12 s``, or how it ended."""
        ending = self.process.ending
        if ending is None:
            return f"is running, for {time.monotonic() - self.started:.0f} s now"
        if ending.failure is not None:
            return failed_start(self.process, self.launch.directory).message
        return how_it_ended(ending)

    def news(self, limit_bytes: int) -> str:
        """Its state, and its output since this was last asked."""
        output = output_text(self.process.stdout, self.process.stderr, limit_bytes, advice=_ADVICE)
        notes = leftovers(self.process.ending) if self.process.ending is not None else []
        lines = [f"[{self.id} {self.state()}]", output.removesuffix("\n") or "(no new output)", *notes]
        return "\n".join(lines)


class Jobs:
    """The jobs of all sessions that share a toolset."""

    def __init__(self) -> None:
        self._sessions: dict[str, dict[str, Job]] = {}
        self._numbers = itertools.count(1)

    async def start(self, launch: Launch, turn: Turn, timeout_secs: float | None) -> str:
        """Starts a job; returns what the model is told.

        Raises:
            ToolError: it could not be started, has failed at once, or too many are running.
        """
        if not turn.session_id:
            raise ToolError("a job in the background ends with its session, and this call belongs to none")
        jobs = self._sessions.setdefault(turn.session_id, {})
        running = [job.id for job in jobs.values() if job.running]
        if len(running) >= MAX_RUNNING:
            raise ToolError(
                f"{len(running)} jobs are running already, which is the most there may be: {', '.join(running)}",
                hint="end one with job_kill first",
            )
        for ended in [job.id for job in jobs.values() if not job.running][:-MAX_ENDED]:
            del jobs[ended]
        job = Job(f"job-{next(self._numbers)}", launch)
        jobs[job.id] = job
        job.process.start(limit_secs=timeout_secs)
        try:
            await job.process.wait_for_start(START_SECS)
            has_ended = await job.process.wait(FIRST_LOOK_SECS)
        except BaseException:
            # Nobody will ever learn of this job, so nobody could end it.
            await job.process.end()
            jobs.pop(job.id, None)
            raise
        if has_ended:
            news = job.news(turn.result_limit_bytes)
            if job.failed:
                raise ToolError(news)
            return news
        limit = f" It is ended after {timeout_secs:g} s." if timeout_secs is not None else ""
        return (
            f"{job.id} is running in the background.{limit} "
            f"job_output shows what it writes, job_kill ends it; it ends with the session at the latest."
        )

    def find(self, job_id: str, turn: Turn) -> Job:
        """A job of the turn's session. Raises :class:`~openheim.ToolError` if there is none of that id."""
        jobs = self._sessions.get(turn.session_id, {})
        job = jobs.get(job_id)
        if job is None:
            known = f"; there are: {', '.join(jobs)}" if jobs else ""
            raise ToolError(f"there is no job {job_id!r} in this session{known}")
        return job

    def keep(self, session_id: str) -> bool:
        """Whether a job of the session is running."""
        return any(job.running for job in self._sessions.get(session_id, {}).values())

    async def close(self, session_id: str) -> None:
        """Ends all jobs of a session, and forgets them."""
        jobs = self._sessions.pop(session_id, {})
        async with anyio.create_task_group() as group:
            for job in jobs.values():
                if job.running:
                    group.start_soon(job.process.end)


class _JobTool:
    """What both tools for jobs have in common."""

    kind: ToolKind = "other"
    #: Jobs end with the process, so after a crash there is none to ask about.
    replay: Replay = "never"
    approval_scope = "tool"

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    def target(self, arguments: dict[str, Any], turn: Turn) -> str | None:
        job_id = arguments.get("job_id")
        return job_id if isinstance(job_id, str) and job_id.strip() else None


class JobOutput(_JobTool):
    """Tells what a job has written since it was last asked; see :class:`openheim.tools.Tool`."""

    name = "job_output"
    description = (
        "Show what a background job has written since this was last called for it, and whether it is still running or "
        "how it ended."
    )
    parameters: Mapping[str, Any] = JOB_OUTPUT
    read_only = True

    async def run(self, arguments: dict[str, Any], turn: Turn) -> ToolResult:
        job = self._jobs.find(arguments["job_id"], turn)
        await job.process.wait(arguments.get("wait_secs") or 0)
        return ToolResult((TextBlock(job.news(turn.result_limit_bytes)),), display={"title": f"Output of {job.id}"})


class JobKill(_JobTool):
    """Ends a job; see :class:`openheim.tools.Tool`."""

    name = "job_kill"
    description = "End a background job with everything that it started, and show what it has written since."
    parameters: Mapping[str, Any] = JOB_KILL
    kind: ToolKind = "execute"
    read_only = False

    async def run(self, arguments: dict[str, Any], turn: Turn) -> ToolResult:
        job = self._jobs.find(arguments["job_id"], turn)
        await job.process.end()
        return ToolResult((TextBlock(job.news(turn.result_limit_bytes)),), display={"title": f"End {job.id}"})
