"""``openheim run``: one prompt, one turn, an answer and an exit code."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openheim.cli import options
from openheim.cli.failures import print_traceback, report_failure, warn
from openheim.cli.interrupts import ignore_signals, turn_signals
from openheim.cli.lean import LeanCommand
from openheim.cli.printing import print_text
from openheim.cli.prompt_input import read_prompt, read_schema
from openheim.cli.run_result import failed_result, run_result
from openheim.cli.starting import make_runtime
from openheim.errors import SessionNotFoundError, StorageError, UsageError
from openheim.permissions import parse_rule
from openheim.permissions.modes import known_mode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from openheim.cli.output import StdoutWriter
    from openheim.cli.run_output import Output
    from openheim.events import Event
    from openheim.messages import Block
    from openheim.runtime import Runtime, Session

__all__ = ("OutputFormat", "app")

app = typer.Typer(add_completion=False, rich_markup_mode=None)


class OutputFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    STREAM_JSON = "stream-json"


@app.command(cls=LeanCommand)
def run(
    prompt: Annotated[
        str | None,
        typer.Argument(
            metavar="PROMPT", help="What to do. Left out or '-': read from standard input.", show_default=False
        ),
    ] = None,
    provider: Annotated[
        str | None, typer.Option(metavar="NAME", help="A configured provider, or a kind such as demo.")
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="One of the provider's models.")] = None,
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="Go on with this session; the beginning of its id is enough.")
    ] = None,
    go_on: Annotated[bool, typer.Option("--continue", help="Go on with the newest session of this directory.")] = False,
    skills: Annotated[list[str] | None, typer.Option(metavar="NAMES", help="Skills for a new session: a,b.")] = None,
    trust: Annotated[bool, typer.Option("--trust", help="Trust this project's own settings, for this run.")] = False,
    mode: Annotated[
        str | None, typer.Option(metavar="MODE", help="default, plan, acceptEdits, bypassPermissions or dontAsk.")
    ] = None,
    max_iterations: Annotated[int | None, typer.Option(metavar="N", help="Model calls at most.")] = None,
    timeout: Annotated[
        float | None, typer.Option(metavar="SECS", help="Seconds after which the turn is cancelled.")
    ] = None,
    cwd: Annotated[str | None, typer.Option(metavar="DIR", help="Working directory of the session.")] = None,
    allow: Annotated[
        list[str] | None, typer.Option(metavar="RULE", help="Rule that allows, such as 'edit_file(src/**)'.")
    ] = None,
    deny: Annotated[list[str] | None, typer.Option(metavar="RULE", help="Rule that denies; it wins.")] = None,
    image: Annotated[list[str] | None, typer.Option(metavar="FILE", help="Attach an image file.")] = None,
    schema: Annotated[
        str | None, typer.Option(metavar="FILE", help="JSON Schema that the answer has to match.")
    ] = None,
    output: Annotated[
        OutputFormat, typer.Option(metavar="FORMAT", help="Form of standard output: text, json or stream-json.")
    ] = OutputFormat.TEXT,
) -> int:
    """Answer one prompt and exit.

    Standard output carries the answer and nothing else; notices go to standard error. Nobody is asked for permission:
    what rules and mode leave open is allowed in the default mode and denied with --mode dontAsk.
    """
    try:
        if max_iterations is not None and max_iterations < 1:
            raise UsageError("--max-iterations must be at least 1", hint="leave it out for the default")
        if timeout is not None and not timeout > 0:
            raise UsageError("--timeout must be more than 0 seconds", hint="leave it out for no limit")
        response_schema = read_schema(schema) if schema is not None else None
        content = read_prompt(prompt, image or (), timeout_secs=timeout)
        settings = _settings(max_iterations, mode, allow, deny)
        if session is not None and go_on:
            raise UsageError("--session and --continue exclude each other", hint="give one of them")
        if skills and (session is not None or go_on):
            raise UsageError("--skills is for new sessions", hint="a session keeps the skills that it was started with")
        # Mode and limit are settings as well, but who asked for what a policy refuses is told so.
        asked: dict[str, Any] = {"provider": provider, "model": model, "mode": mode, "max_iterations": max_iterations}
        if session is not None:
            from openheim.cli.resuming import resume_named

            try:
                runtime, chosen = resume_named(session, settings, cwd=cwd, trust=trust, **asked)
            except SessionNotFoundError as err:
                raise UsageError(err.message, hint=err.hint) from err
        else:
            runtime = make_runtime(settings, cwd=cwd, trust=trust)
            if go_on:
                chosen = runtime.load_session(_newest_session(runtime, cwd), cwd=cwd, **asked)
            else:
                names = [name.strip() for given in skills or () for name in given.split(",") if name.strip()]
                chosen = runtime.new_session(skills=names, cwd=cwd, **asked)
        for line in (*chosen.warnings, *_rules_about_no_tool(runtime, (*(allow or ()), *(deny or ())))):
            warn(line)
    except Exception as err:
        if output is OutputFormat.TEXT:
            raise
        return _fail_early(err, output)
    return _Run(runtime, chosen, content, output.value, timeout, response_schema).start()


def _settings(
    max_iterations: int | None, mode: str | None, allow: list[str] | None, deny: list[str] | None
) -> dict[str, Any]:
    """Options as settings, so that a managed policy holds over them."""
    settings: dict[str, Any] = {}
    if max_iterations is not None:
        settings["max_iterations"] = max_iterations
    permissions: dict[str, Any] = {"allow": [*(allow or ())], "deny": [*(deny or ())]}
    if mode is not None:
        permissions["mode"] = known_mode(mode)
    # Checked here, for an error about the command line and not about a file.
    for rule in (*permissions["allow"], *permissions["deny"]):
        parse_rule(rule)
    return settings | {"permissions": {name: value for name, value in permissions.items() if value}}


def _rules_about_no_tool(runtime: Runtime, rules: Sequence[str]) -> Iterator[str]:
    """Rules of the command line about tools that there are not: as likely a slip as meant for another time."""
    if not rules:
        return
    from openheim.cli.rule_checks import no_such_tool

    for text in rules:
        missing = no_such_tool(parse_rule(text).tool, runtime.toolbox.tools)
        if missing is not None:
            yield f"the rule {text}: {'; '.join(filter(None, missing))}"


def _newest_session(runtime: Runtime, cwd: str | None) -> str:
    """The id of the session of that directory that was used last."""
    from openheim.store.operations.listing import list_sessions

    directory = str(runtime.directory_for(cwd))
    rows = list_sessions(runtime.store, cwd=directory, limit=1).rows if runtime.store.folder.is_dir() else []
    if not rows:
        raise UsageError(f"there is no session of {directory} to go on with", hint="leave --continue out to start one")
    return rows[0].meta.id


def _fail_early(err: Exception, output: OutputFormat) -> int:
    from openheim.jsontext import dump_text

    record: dict[str, Any] = failed_result(err).record
    if output is OutputFormat.STREAM_JSON:
        record = {"type": "result", "session_id": None, "seq": 0} | record
    print_text(dump_text(record))
    return report_failure(err)


class _Run:
    """One turn under signals and a time limit."""

    def __init__(
        self,
        runtime: Runtime,
        session: Session,
        content: Sequence[Block],
        form: str,
        timeout: float | None,
        response_schema: Mapping[str, Any] | None,
    ) -> None:
        self.runtime = runtime
        self.session = session
        self.content = content
        self.form = form
        self.timeout = timeout
        self.response_schema = response_schema
        self.signal: int | None = None
        self.timed_out = False
        #: Whether the turn itself has said that not all could be saved.
        self.storage_failed = False
        self.ended = False

    def start(self) -> int:
        import anyio

        code: int = anyio.run(self._run)
        # All is done and saved; a signal that comes now must not make it look otherwise.
        ignore_signals()
        return code

    async def _run(self) -> int:
        import anyio
        from anyio import to_thread

        from openheim.cli.output import StdoutWriter
        from openheim.cli.run_output import output_for
        from openheim.plugins.supervision import diverted_stdout

        writer = StdoutWriter(self.session.cancel)
        output = output_for(self.form, writer)
        async with anyio.create_task_group() as group:
            await group.start(self._watch_signals)
            if self.timeout is not None:
                group.start_soon(self._watch_time, self.timeout)
            # What tools and plugins print is not part of the answer.
            with diverted_stdout():
                async with self.runtime:
                    code = await self._turn(output, writer)
                    await to_thread.run_sync(writer.finish, abandon_on_cancel=True)
            group.cancel_scope.cancel()
        err = self.session.unsaved
        if err is not None and not self.storage_failed:
            # All should be on the disk by now.
            told = report_failure(StorageError(f"the session may not be saved: {err.message}", hint=err.hint))
            code = code or told
        if not writer.gone:
            return code
        if writer.reason:
            print(f"error: {writer.reason}", file=sys.stderr)
        return 1 if writer.reason else 141

    async def _turn(self, output: Output, writer: StdoutWriter) -> int:
        session = self.session
        output.start(session)

        def show(event: Event) -> None:
            # The result is the last that is said of a turn; what can still not be saved is told at the end.
            if not self.ended:
                output.show(event)

        session.stream.attach(show)
        try:
            outcome = await session.run(self.content, response_schema=self.response_schema)
        except Exception as err:
            result = failed_result(err, session)
            if options.current().debug:
                print_traceback(err)
        else:
            result = run_result(session, outcome, signal=self.signal, timed_out=self.timed_out)
            if self.response_schema is not None:
                result.record["value"] = outcome.value
            self.storage_failed = isinstance(outcome.error, StorageError)
        self.ended = True
        if not writer.gone:
            output.end(result)
        return result.exit_code

    async def _watch_signals(self, *, task_status: Any) -> None:
        async for number in turn_signals(task_status=task_status):
            if not self.session.running:
                # There is no turn to end in order.
                os._exit(128 + number)
            self.signal = number
            self.session.cancel()

    async def _watch_time(self, seconds: float) -> None:
        import anyio

        await anyio.sleep(seconds)
        self.timed_out = True
        self.session.cancel()
