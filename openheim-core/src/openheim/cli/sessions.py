"""``openheim sessions``: what was said before, and what can be done with it."""

from __future__ import annotations

import os
import re
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openheim.cli.failures import warn
from openheim.cli.lean import LeanCommand, lean_app
from openheim.cli.printing import one_line, print_text
from openheim.cli.session_files import read_import, write_export
from openheim.cli.starting import read_settings
from openheim.cli.tables import print_json, print_table
from openheim.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openheim.config.load import LoadedConfig
    from openheim.store import HistoryStore, SessionMeta
    from openheim.store.digest import Totals
    from openheim.store.index import Progress
    from openheim.store.rows import SessionRow

__all__ = ("ExportFormat", "app")

app = lean_app(no_args_is_help=True, help="List, search, copy and remove sessions.")

Id = Annotated[str, typer.Argument(metavar="ID", help="A session's id, or its beginning.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Full = Annotated[bool, typer.Option("--full", help="With --json: everything that is stored, and totals.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]

#: Characters of an id that listings show: enough to tell thousands of sessions apart.
_SHOWN_OF_ID = 8

#: Reading fewer sessions takes no time worth a bar.
_WORTH_A_BAR = 300

_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw]?)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "": 86400, "w": 604800}


class ExportFormat(StrEnum):
    MARKDOWN = "markdown"
    JSON = "json"


@app.command("list", cls=LeanCommand)
def list_command(
    as_json: AsJson = False,
    full: Full = False,
    limit: Annotated[int, typer.Option(metavar="N", help="Sessions at most; 0 for all.")] = 50,
    cwd: Annotated[str | None, typer.Option(metavar="DIR", help="Only sessions of this directory.")] = None,
    archived: Annotated[bool, typer.Option("--archived", help="Archived sessions instead of the others.")] = False,
) -> None:
    """List sessions, the one that was used last first."""
    from openheim.store.operations.listing import list_sessions

    if limit < 0:
        raise UsageError("--limit cannot be negative", hint="use 0 for all")
    loaded = read_settings()
    page = list_sessions(
        _store(loaded),
        cwd=os.path.realpath(cwd) if cwd is not None else None,
        archived=archived,
        limit=limit or None,
        progress=_progress_bar(),
    )
    if as_json:
        print_json([row.meta.to_dict(full=full) | (_row_totals(row, loaded) if full else {}) for row in page.rows])
        return
    _print_rows(page.rows)
    if page.next_cursor is not None:
        print(f"note: there are more than these {limit} (--limit 0 shows all)", file=sys.stderr)


@app.command("show", cls=LeanCommand)
def show_command(session_id: Id, as_json: AsJson = False, full: Full = False) -> None:
    """Show a session: facts, tokens used, and the conversation."""
    from openheim.messages import message_to_stored
    from openheim.store.digest import totals_of
    from openheim.store.operations.export import markdown
    from openheim.store.operations.showing import conversation

    loaded = read_settings()
    store = _store(loaded)
    stored = store.load(_found(store, session_id))
    for line in stored.warnings:
        warn(line)
    totals = totals_of(map(message_to_stored, stored.messages), stored.records)
    if as_json:
        shown = conversation(stored, full=full)
        print_json(shown | {"totals": totals.to_dict(_cost(totals, loaded))} if full else shown)
        return
    text = markdown(stored, more_facts=_totals_shown(totals, loaded))
    print_text(text, end="")


@app.command("search", cls=LeanCommand)
def search_command(
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="Words that a message or title holds.")],
    as_json: AsJson = False,
    limit: Annotated[int, typer.Option(metavar="N", help="Sessions at most.")] = 20,
) -> None:
    """Find sessions by words: all of them in one message, else any of them. The best match comes first."""
    from openheim.store.operations.listing import search_sessions

    if limit < 1:
        raise UsageError("--limit must be at least 1", hint="leave it out for 20")
    hits = search_sessions(_store(read_settings()), " ".join(words), limit=limit, progress=_progress_bar())
    if as_json:
        print_json([hit.row.meta.to_dict() | {"excerpt": hit.excerpt, "matches": hit.matches} for hit in hits])
        return
    for hit in hits:
        meta = hit.row.meta
        print(f"{meta.id[:_SHOWN_OF_ID]}  {_shown_time(meta.updated_at)}  {one_line(meta.title or '')}")
        print(f"    {one_line(hit.excerpt)}")
    if not hits:
        print("note: no session holds any of these words", file=sys.stderr)


@app.command("rename", cls=LeanCommand)
def rename_command(
    session_id: Id, title: Annotated[str, typer.Argument(metavar="TITLE")], as_json: AsJson = False
) -> None:
    """Give a session another title."""
    from openheim.store.operations.marks import rename_session

    store = _store(read_settings())
    _print_done("renamed", rename_session(store, _found(store, session_id), title), as_json)


@app.command("fork", cls=LeanCommand)
def fork_command(
    session_id: Id,
    title: Annotated[str | None, typer.Option(metavar="TITLE", help="Title of the copy.")] = None,
    as_json: AsJson = False,
) -> None:
    """Copy a session up to its last completed turn, to go on in another direction. Prints the new id."""
    from openheim.store.operations.fork import fork_session

    store = _store(read_settings())
    copy = fork_session(store, _found(store, session_id), title=title)
    if as_json:
        print_json(copy.to_dict(full=True))
    else:
        print(copy.id)


@app.command("compact", cls=LeanCommand)
def compact_command(session_id: Id) -> None:
    """Have the model summarise a session, so that it goes on with less to read. What is stored stays as it is."""
    import anyio

    from openheim.cli.resuming import resume_named

    async def compact() -> bool:
        async with runtime:
            return await session.compact()

    runtime, session = resume_named(session_id)
    for line in session.warnings:
        warn(line)
    done = anyio.run(compact)
    print(f"compacted {session.id}" if done else f"nothing to compact in {session.id}")


@app.command("archive", cls=LeanCommand)
def archive_command(session_id: Id, as_json: AsJson = False) -> None:
    """Take a session out of the listing, for good. It can still be opened by its id."""
    from openheim.store.operations.marks import archive_session

    store = _store(read_settings())
    _print_done("archived", archive_session(store, _found(store, session_id)), as_json)


@app.command("delete", cls=LeanCommand)
def delete_command(session_id: Id, yes: Yes = False) -> int:
    """Delete a session and all its files."""
    from openheim.store.operations.removal import delete_session

    store = _store(read_settings())
    found = _found(store, session_id)
    meta = store.read_meta(found)
    name = f"{found} {one_line(meta.title or '') if meta is not None else ''}".rstrip()
    if not _agreed(f"Delete {name}?", yes):
        return 1
    delete_session(store, found)
    print(f"deleted {name}")
    return 0


@app.command("prune", cls=LeanCommand)
def prune_command(
    older_than: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only sessions not used for so long: 30d, 12h, 8w.")
    ] = None,
    keep: Annotated[int | None, typer.Option(metavar="N", help="Never the newest so many.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Delete nothing; list what would be deleted.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> int:
    """Delete old sessions. One that is in use is left alone."""
    from openheim.store.operations.removal import prune_sessions

    if keep is not None and keep < 0:
        raise UsageError("--keep cannot be negative", hint="use 0 or more")
    store = _store(read_settings())
    limits: dict[str, Any] = {
        "older_than_secs": _seconds(older_than) if older_than is not None else None,
        "keep": keep,
        "progress": _progress_bar(),
    }
    if not dry_run and not yes and _can_ask():
        count = len(prune_sessions(store, **limits, dry_run=True).removed)
        if not count or not _agreed(f"Delete {count} session{'' if count == 1 else 's'}?", yes):
            print("nothing was deleted")
            return 0
    pruned = prune_sessions(store, **limits, dry_run=dry_run)
    for meta, err in pruned.kept:
        warn(f"session {meta.id} is kept: {err}")
    if as_json:
        print_json([meta.to_dict() for meta in pruned.removed])
        return 0
    for meta in pruned.removed:
        print(f"{meta.id}  {_shown_time(meta.updated_at)}  {one_line(meta.title or '')}".rstrip())
    word = "would be deleted" if dry_run else "deleted"
    print(f"{len(pruned.removed)} session{'' if len(pruned.removed) == 1 else 's'} {word}", file=sys.stderr)
    return 0


@app.command("export", cls=LeanCommand)
def export_command(
    session_id: Id,
    form: Annotated[
        ExportFormat, typer.Option("--format", metavar="FORMAT", help="markdown to read, json to import again.")
    ] = ExportFormat.MARKDOWN,
    output: Annotated[str | None, typer.Option(metavar="FILE", help="Where to; standard output if left out.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
) -> None:
    """Write a session as Markdown or JSON. Keys in use are left out wherever they stand."""
    import json

    from openheim.store.operations.export import export_json, export_markdown

    if output == "":
        raise UsageError("--output needs the name of a file", hint="leave it out for standard output")
    loaded = read_settings()
    store = _store(loaded)
    found, secrets = _found(store, session_id), _secrets(loaded)
    if form is ExportFormat.JSON:
        text = json.dumps(export_json(store, found, secrets=secrets), indent=2) + "\n"
    else:
        text = export_markdown(store, found, secrets=secrets)
    if output is None or output == "-":
        print_text(text, end="")
    else:
        write_export(output, text, force=force)
        print(f"wrote {output}", file=sys.stderr)


@app.command("import", cls=LeanCommand)
def import_command(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="What export --format json wrote; '-' for standard input.")
    ],
    as_json: AsJson = False,
) -> None:
    """Add a session from a file, to work in the current directory. Prints its id, a new one if it is taken here."""
    import json

    from openheim.runtime.places import current_directory
    from openheim.store.operations.importing import import_session

    store = _store(read_settings())
    try:
        document = json.loads(read_import(file))
    except (ValueError, RecursionError) as err:
        raise UsageError(f"{file} is no JSON: {err}", hint="import what export --format json wrote") from err
    meta = import_session(store, document, cwd=os.path.realpath(current_directory()))
    if as_json:
        print_json(meta.to_dict(full=True))
    else:
        print(meta.id)


# --- what they share ---


def _store(loaded: LoadedConfig) -> HistoryStore:
    from openheim.store import HistoryStore

    return HistoryStore(loaded.data_dir / "history")


def _found(store: HistoryStore, prefix: str) -> str:
    from openheim.store.operations.finding import find_session

    return find_session(store, prefix)


def _print_rows(rows: Sequence[SessionRow]) -> None:
    print_table(
        ("ID", "UPDATED", "MESSAGES", "TITLE", "DIRECTORY"),
        [
            (
                row.meta.id[:_SHOWN_OF_ID],
                _shown_time(row.meta.updated_at),
                row.messages,
                row.meta.title,
                row.meta.cwd,
            )
            for row in rows
        ],
    )


def _print_done(word: str, meta: SessionMeta, as_json: bool) -> None:
    if as_json:
        print_json(meta.to_dict(full=True))
    else:
        print(f"{word} {meta.id} {one_line(meta.title or '')}".rstrip())


def _shown_time(text: str) -> str:
    return one_line(text[:16].replace("T", " "))


def _totals_shown(totals: Totals, loaded: LoadedConfig) -> dict[str, str]:
    tokens = totals.tokens
    shown = {
        "Messages": f"{totals.messages:,} in {totals.turns:,} turn{'' if totals.turns == 1 else 's'}",
        "Tokens": f"{tokens.input_tokens:,} in, {tokens.output_tokens:,} out, "
        f"{tokens.cache_read_tokens:,} read from and {tokens.cache_creation_tokens:,} written to caches",
    }
    cost = _cost(totals, loaded)
    if cost is not None:
        shown["Cost"] = f"{cost:.4f}"
    return shown


def _cost(totals: Totals, loaded: LoadedConfig) -> float | None:
    """What a session cost by the prices of the settings; None where one is missing, or nothing was used."""
    providers = loaded.config.providers
    cost = totals.cost(lambda name, _model: entry.price if (entry := providers.get(name)) is not None else None)
    return cost if totals.usage else None


def _row_totals(row: SessionRow, loaded: LoadedConfig) -> dict[str, Any]:
    totals = row.totals
    return {"totals": totals.to_dict(_cost(totals, loaded)) if totals is not None else None}


def _secrets(loaded: LoadedConfig) -> list[str]:
    """Keys that this machine knows of."""
    from openheim.config.secrets import find_key
    from openheim.errors import ConfigError

    found = [value for name, value in os.environ.items() if name.endswith("_API_KEY")]
    for name, entry in loaded.config.providers.items():
        try:
            found.append(find_key(name, entry, os.environ))
        except ConfigError:
            # A key that cannot be read here was not used here either.
            continue
    return found


def _seconds(text: str) -> float:
    found = _SPAN.fullmatch(text.strip().lower())
    if found is None:
        raise UsageError(f"{text!r} is no time span", hint="write 30d, 12h or 8w")
    span = float(found[1]) * _SECONDS[found[2]]
    if span == float("inf"):
        raise UsageError("that time span is too long", hint="write 30d, 12h or 8w")
    return span


def _can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _agreed(question: str, yes: bool) -> bool:
    return yes or not _can_ask() or typer.confirm(question, err=True)


def _progress_bar() -> Progress | None:
    if not sys.stderr.isatty():
        return None

    def show(done: int, total: int) -> None:
        if total < _WORTH_A_BAR:
            return
        filled = "#" * (done * 30 // total)
        end = "\r\x1b[K" if done == total else ""
        print(f"\r[{filled:30}] {done:,} of {total:,} sessions read{end}", end="", file=sys.stderr, flush=True)

    return show
