"""``openheim sessions`` as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from openheim.messages import ImageBlock, Message, TextBlock, ToolResultBlock
from openheim.store import HistoryStore
from tests.cli.command import LIMIT, Command, Ended, finish, on_terminal
from tests.store.stores import (
    ID,
    NOW,
    OTHER_ID,
    assistant,
    call,
    result,
    session_id,
    turn_end,
    user,
    write_session,
)
from tests.support.openai_server import OpenAIServer
from tests.support.openai_wire import text

SECRET = "sk-secret-of-this-machine"


@pytest.fixture
def store(openheim: Command) -> HistoryStore:
    made = HistoryStore(openheim.home / "history")
    made.prepare()
    return made


@pytest.fixture
def two(store: HistoryStore) -> HistoryStore:
    """A store with two sessions."""
    write_session(
        store, ID, user("first question"), assistant("first answer"), turn_end(), updated="2026-01-02T03:04:05.000Z"
    )
    write_session(store, OTHER_ID, user("other question"), title="other", cwd="/elsewhere")
    return store


# --- listing and showing ---


def test_list_is_empty_in_a_new_home(openheim: Command) -> None:
    ended = openheim("sessions", "list")
    assert (ended.code, ended.out) == (0, "")
    assert openheim("sessions", "list", "--json").json == []


def test_list_shows_the_newest_first(openheim: Command, two: HistoryStore) -> None:
    ended = openheim("sessions", "list")
    header, first, second = ended.out.splitlines()
    assert header.split() == ["ID", "UPDATED", "MESSAGES", "TITLE", "DIRECTORY"]
    assert first.split() == [ID[:8], "2026-01-02", "03:04", "2", "a", "title"]
    assert second.startswith(OTHER_ID[:8])
    assert (
        openheim("sessions", "list", "--limit", "1").err == "note: there are more than these 1 (--limit 0 shows all)\n"
    )


def test_list_as_json_has_the_published_fields(openheim: Command, two: HistoryStore) -> None:
    rows = openheim("sessions", "list", "--json").json
    assert [row["id"] for row in rows] == [ID, OTHER_ID]
    assert rows[0] == two.load(ID).meta.to_dict()
    assert set(rows[0]) == {"id", "created_at", "updated_at", "title", "model", "provider", "skills", "cwd"}
    full = openheim("sessions", "list", "--json", "--full").json[0]
    assert full["format"] == 1
    assert full["totals"] == {
        "messages": 2,
        "turns": 1,
        "input_tokens": 10,
        "output_tokens": 5,
        "cache_creation_tokens": 0,
        "cache_read_tokens": 0,
        "cost": None,
    }
    assert [row["id"] for row in openheim("sessions", "list", "--json", "--cwd", "/elsewhere").json] == [OTHER_ID]
    assert len(openheim("sessions", "list", "--json", "--limit", "0").json) == 2


def test_sessions_of_run_are_listed_in_their_directory(openheim: Command) -> None:
    assert openheim("run", "--provider", "demo", "hello").code == 0
    (row,) = openheim("sessions", "list", "--json", "--cwd", ".").json
    assert (row["title"], row["cwd"]) == ("hello", str(openheim.folder))
    assert openheim("sessions", "list", "--json", "--cwd", "/").json == []


def test_show_as_json_is_the_published_conversation(openheim: Command, store: HistoryStore) -> None:
    tool = Message("tool", (ToolResultBlock("c", "view", "seen", images=(ImageBlock("aGk=", "image/png"),)),), id="t")
    write_session(store, ID, user("q"), call("c"), tool, turn_end())
    shown = openheim("sessions", "show", "55", "--json").json
    assert set(shown) == {"meta", "messages"}
    assert shown["messages"][0] == {"role": "user", "content": [{"type": "text", "text": "q"}]}
    assert set(shown["messages"][2]["content"][0]) == {"type", "tool_call_id", "tool_name", "content"}
    full = openheim("sessions", "show", ID, "--json", "--full").json
    assert full["records"] == [turn_end()]
    assert full["totals"]["turns"] == 1
    assert full["messages"][2]["content"][0]["images"]
    assert full["meta"]["mode"] == "default"


def test_show_tells_facts_cost_and_the_conversation(openheim: Command, store: HistoryStore) -> None:
    openheim.configure('[providers.p]\nkind = "openai"\n[providers.p.price]\ninput = 1000\noutput = 2000\n')
    hostile = Message("user", (TextBlock("look \x1b]0;title\x07 \x9b31m here\tok"),), id="h", created_at=NOW)
    write_session(store, ID, hostile, call("c1"), result("c1"), assistant("done"), title="A title", provider="p")
    ended = openheim("sessions", "show", ID)
    assert ended.out.startswith("# A title\n\n- Session: ")
    assert "- Messages: 4 in 1 turn\n" in ended.out
    assert "- Tokens: 10 in, 5 out" in ended.out
    assert "- Cost: 0.0200\n" in ended.out
    assert "<summary>Tool call: read_file</summary>" in ended.out
    # A pipe gets what is stored; a terminal nothing that it would obey.
    assert "look \x1b]0;title\x07 \x9b31m here\tok" in ended.out
    # A model without a price: no sum is better than one that is too low.
    (openheim.home / "config.toml").unlink()
    assert "Cost" not in openheim("sessions", "show", ID).out


@pytest.mark.parametrize("arguments", [["show", ID], ["show", ID, "--json"], ["export", ID], ["list"], ["search", "q"]])
def test_nothing_stored_speaks_to_a_terminal(openheim: Command, store: HistoryStore, arguments: list[str]) -> None:
    hostile = "q \x1b]0;title\x07 \x9b31m \u202eback\u202c \u2066in\u2069"
    write_session(store, ID, user(hostile), result("c", hostile), title=hostile, cwd="/\x1b[2J", updated="\x1b[31m")
    code, shown = on_terminal(openheim, "sessions", *arguments)
    assert code == 0
    assert "q " in shown
    assert not set(shown) & set("\x1b\x07\x9b\u202e\u202c\u2066\u2069")


def test_halves_of_characters_are_shown_as_question_marks(openheim: Command, store: HistoryStore) -> None:
    write_session(store, ID, user("q"), assistant("a \ud800 b"), title="\udfff")
    for arguments in (["show", ID], ["show", ID, "--json"], ["export", ID]):
        ended = openheim("sessions", *arguments)
        assert (ended.code, ended.err) == (0, ""), arguments
        assert "a ? b" in ended.out


def test_a_limit_beyond_all_numbers_shows_all(openheim: Command, two: HistoryStore) -> None:
    assert len(openheim("sessions", "list", "--limit", str(10**30)).out.splitlines()) == 3


def test_show_warns_of_what_it_had_to_skip(openheim: Command, two: HistoryStore) -> None:
    with two.log_path(ID).open("ab") as file:
        file.write(b'{"role":"us')
    ended = openheim("sessions", "show", ID)
    assert ended.code == 0
    assert ended.err == "warning: the last line of the history was cut off and is skipped\n"


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["show", "9"], 1, "there is no session 9"),
        (["show", "../../etc/passwd"], 1, "there is no session"),
        (["show"], 2, "ID"),
        (["list", "--limit", "-1"], 2, "--limit"),
        (["list", "--limit", "x"], 2, "no whole number"),
        (["search", "?"], 2, "nothing to search for"),
        (["search", "x", "--limit", "0"], 2, "--limit"),
        (["prune"], 2, "a limit"),
        (["prune", "--older-than", "soon"], 2, "no time span"),
        (["prune", "--keep", "-1"], 2, "negative"),
        (["prune", "--older-than", "9" * 400], 2, "too long"),
        (["rename", ID, " "], 2, "needs text"),
        (["fork", OTHER_ID], 2, "no completed turn"),
        (["export", ID, "--output", ""], 2, "--output needs"),
        (["export", ID, "--format", "pdf"], 2, "'pdf' is not one of markdown, json"),
        (["import", "nowhere.json"], 2, "cannot read nowhere.json"),
    ],
)
def test_slips(openheim: Command, two: HistoryStore, arguments: list[str], code: int, complaint: str) -> None:
    ended = openheim("sessions", *arguments)
    assert (ended.code, ended.out) == (code, "")
    assert complaint in ended.error


def test_a_prefix_of_several_sessions_names_them(openheim: Command, store: HistoryStore) -> None:
    for number in range(7):
        write_session(store, session_id(number))
    ended = openheim("sessions", "show", "55")
    assert ended.code == 2
    assert "7 sessions begin with 55" in ended.error
    assert session_id(0) in ended.error


# --- search ---


def test_search(openheim: Command, two: HistoryStore) -> None:
    ended = openheim("sessions", "search", "first", "answer")
    assert ended.out.splitlines() == [f"{ID[:8]}  2026-01-02 03:04  a title", "    first answer"]
    hits = openheim("sessions", "search", "question", "--json").json
    assert {hit["id"] for hit in hits} == {ID, OTHER_ID}
    assert {hit["excerpt"] for hit in hits} == {"first question", "other question"}
    nothing = openheim("sessions", "search", "nowhere")
    assert (nothing.code, nothing.out) == (0, "")
    assert "no session holds" in nothing.err


# --- changing ---


def test_rename_archive_and_fork(openheim: Command, two: HistoryStore) -> None:
    assert openheim("sessions", "rename", ID[:4], "better  name").out == f"renamed {ID} better name\n"
    copy = openheim("sessions", "fork", ID, "--title", "other way").out.strip()
    assert openheim("sessions", "archive", ID, "--json").json["archived"] is True
    rows = openheim("sessions", "list", "--json").json
    assert [(row["id"], row["title"]) for row in rows] == [(copy, "other way"), (OTHER_ID, "other")]
    (archived,) = openheim("sessions", "list", "--json", "--archived").json
    assert (archived["id"], archived["title"]) == (ID, "better name")
    forked = openheim("sessions", "fork", ID, "--json").json
    assert forked["forked_from"]["session_id"] == ID


def test_delete(openheim: Command, two: HistoryStore) -> None:
    ended = openheim("sessions", "delete", ID)
    assert (ended.code, ended.out) == (0, f"deleted {ID} a title\n")
    assert not two.exists(ID)
    assert openheim("sessions", "delete", ID).code == 1


@pytest.mark.parametrize(("typed", "options", "gone"), [("n\n", [], False), ("y\n", [], True), ("", ["--yes"], True)])
def test_delete_asks_on_a_terminal(
    openheim: Command, two: HistoryStore, typed: str, options: list[str], gone: bool
) -> None:
    code, shown = on_terminal(openheim, "sessions", "delete", ID, *options, typed=typed)
    assert code == (0 if gone else 1)
    assert (f"Delete {ID} a title? [y/N]" in shown) == (not options)
    assert two.exists(ID) == (not gone)


def test_a_session_in_use_is_not_deleted(openheim: Command, two: HistoryStore) -> None:
    with two.lease(ID):
        ended = openheim("sessions", "delete", ID)
    assert ended.code == 75
    assert f"is in use by process {os.getpid()}" in ended.error
    assert two.exists(ID)


def test_prune(openheim: Command, store: HistoryStore) -> None:
    for number in range(5):
        write_session(store, session_id(number), user("x"), updated=f"2026-01-0{number + 1}T00:00:00Z", title="t")
    planned = openheim("sessions", "prune", "--keep", "2", "--dry-run")
    assert planned.err == "3 sessions would be deleted\n"
    assert [line.split()[0] for line in planned.out.splitlines()] == [session_id(number) for number in (2, 1, 0)]
    assert len(openheim("sessions", "list", "--json").json) == 5
    assert openheim("sessions", "prune", "--older-than", "36500d", "--json").json == []
    code, shown = on_terminal(openheim, "sessions", "prune", "--keep", "4", typed="n\n")
    assert (code, "Delete 1 session? [y/N]" in shown, "nothing was deleted" in shown) == (0, True, True)
    pruned = openheim("sessions", "prune", "--keep", "2", "--older-than", "0s", "--json").json
    assert [row["id"] for row in pruned] == [session_id(number) for number in (2, 1, 0)]
    with store.lease(session_id(3)):
        ended = openheim("sessions", "prune", "--keep", "0")
    assert ended.out.split()[0] == session_id(4)
    assert f"warning: session {session_id(3)} is kept:" in ended.err


# --- export and import ---


def test_export_and_import(openheim: Command, two: HistoryStore, tmp_path: Path) -> None:
    exported = openheim("sessions", "export", ID, "--format", "json")
    assert json.loads(exported.out)["meta"]["id"] == ID
    copy = openheim("sessions", "import", "-", stdin=exported.out).out.strip()
    assert copy not in (ID, "")
    file = tmp_path / "session.json"
    written = openheim("sessions", "export", ID, "--format", "json", "--output", str(file))
    assert (written.out, written.err) == ("", f"wrote {file}\n")
    assert oct(file.stat().st_mode & 0o777) == "0o600"
    openheim("sessions", "delete", ID)
    assert openheim("sessions", "import", str(file), "--json").json["id"] == ID
    assert openheim("sessions", "show", ID, "--json").json["messages"][1]["content"][0]["text"] == "first answer"


def test_export_replaces_a_file_only_if_told_to(openheim: Command, two: HistoryStore, tmp_path: Path) -> None:
    file = tmp_path / "session.md"
    file.write_text("mine")
    ended = openheim("sessions", "export", ID, "--output", str(file))
    assert (ended.code, file.read_text()) == (2, "mine")
    assert "exists already" in ended.error
    assert openheim("sessions", "export", ID, "--output", str(file), "--force").code == 0
    assert file.read_text().startswith("# a title")


def test_export_writes_to_what_a_link_points_to_and_keeps_its_mode(
    openheim: Command, two: HistoryStore, tmp_path: Path
) -> None:
    file, link = tmp_path / "out.md", tmp_path / "link.md"
    file.write_text("mine")
    file.chmod(0o640)
    link.symlink_to(file)
    assert openheim("sessions", "export", ID, "--output", str(link), "--force").code == 0
    assert link.is_symlink()
    assert file.read_text().startswith("# a title")
    assert oct(file.stat().st_mode & 0o777) == "0o640"


def test_export_into_what_is_no_file(openheim: Command, two: HistoryStore, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    assert openheim("sessions", "export", ID, "--output", str(pipe), "--force").code == 0
    reader.join(LIMIT)
    assert read[0].startswith("# a title")
    assert pipe.is_fifo()
    assert openheim("sessions", "export", ID, "--output", "/dev/stdout").out == read[0]
    # A terminal or /dev/null is written to; never to be replaced, and so not tried on the real one with --force.
    assert openheim("sessions", "export", ID, "--output", "/dev/null").code == 0
    ended = openheim("sessions", "export", ID, "--output", str(tmp_path), "--force")
    assert (ended.code, "is no file" in ended.error) == (2, True)


def test_keys_of_this_machine_are_not_exported(openheim: Command, store: HistoryStore) -> None:
    openheim.configure(f'[providers.p]\nkind = "openai"\napi_key = "{SECRET}"\n')
    other = "another-secret-value"
    write_session(store, ID, user(f"{SECRET} and {other}"), title=None)
    for form in ("json", "markdown"):
        ended = openheim("sessions", "export", ID, "--format", form, env={"SOME_API_KEY": other})
        assert "[secret] and [secret]" in ended.out
        assert SECRET not in ended.out


@pytest.mark.parametrize("content", ["", "{", "[]", '{"messages": 3}', "\0", '{"messages": [{}]}'])
def test_what_is_no_session_is_not_imported(openheim: Command, content: str) -> None:
    ended = openheim("sessions", "import", "-", stdin=content)
    assert (ended.code, ended.out) == (2, "")
    assert "export --format json" in ended.error


# --- around it ---


def test_a_large_history_shows_its_progress_on_a_terminal(openheim: Command, store: HistoryStore) -> None:
    for number in range(600):
        store.meta_path(session_id(number)).write_text(json.dumps({"meta": {"id": session_id(number)}}))
    _code, shown = on_terminal(openheim, "sessions", "list", "--limit", "1")
    assert "500 of 600 sessions read" in shown
    _code, shown = on_terminal(openheim, "sessions", "list", "--limit", "1")
    assert "sessions read" not in shown


def test_listing_works_without_sqlite(openheim: Command, two: HistoryStore) -> None:
    program = (
        "import sys; sys.modules['sqlite3'] = None; sys.argv = ['openheim', *sys.argv[1:]]\n"
        "from openheim.cli import main; main()"
    )

    def without(*arguments: str) -> Ended:
        return finish(
            subprocess.Popen(
                [sys.executable, "-c", program, *arguments],
                env=openheim.environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        )

    assert [row["id"] for row in without("sessions", "list", "--json").json] == [ID, OTHER_ID]
    assert without("sessions", "delete", ID).code == 0
    ended = without("sessions", "search", "question")
    assert ended.code == 1
    assert "searching needs SQLite" in ended.error


@pytest.mark.parametrize("arguments", [["show", ID], ["list"], ["rename", ID, "t"], ["delete", ID]])
def test_nothing_heavy_is_imported(openheim: Command, two: HistoryStore, arguments: list[str]) -> None:
    program = (
        "import sys, json; sys.argv = ['openheim', 'sessions', *sys.argv[1:]]\n"
        "from openheim.cli import main\n"
        "try: main()\n"
        "finally: print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], env=openheim.environment, capture_output=True, timeout=LIMIT
    )
    assert done.returncode == 0
    loaded: list[Any] = json.loads(done.stderr.splitlines()[-1])
    assert not {"pydantic", "httpx", "tomlkit", "openheim.runtime", "asyncio"} & set(loaded)
    assert ("sqlite3" in loaded) == (arguments == ["list"])


def test_compact(openheim: Command) -> None:
    with OpenAIServer([text(reply) for reply in ("one", "two", "three", "the summary", "four")]) as server:
        openheim.use(server)
        assert openheim("run", "first").code == 0
        (history,) = [path.stem for path in (openheim.home / "history").glob("*.jsonl")]
        ended = openheim("sessions", "compact", history[:8])
        assert (ended.code, ended.out) == (0, f"nothing to compact in {history}\n"), ended.err
        for prompt in ("second", "third"):
            assert openheim("run", "--continue", prompt).code == 0
        ended = openheim("sessions", "compact", history)
        assert (ended.code, ended.out) == (0, f"compacted {history}\n"), ended.err
        assert openheim("run", "--continue", "fourth").out == "four\n"
        sent = json.dumps(server.prompts[-1].json["messages"])
    assert "the summary" in sent
    assert "first" in sent
    assert "two" not in sent
    assert "two" in openheim("sessions", "show", history).out


def test_names_that_are_not_utf8(openheim: Command, tmp_path: Path) -> None:
    folder = os.path.join(os.fsencode(tmp_path), b"a\xff")
    os.mkdir(folder)
    assert openheim("run", "--provider", "demo", "--cwd", os.fsdecode(folder), "hi").code == 0
    assert openheim("run", "--provider", "demo", "hello").code == 0
    for arguments in (("list",), ("list", "--json"), ("search", "hello"), ("prune", "--keep", "5", "--yes")):
        ended = openheim("sessions", *arguments)
        assert (ended.code, ended.err.count("error")) == (0, 0), ended.err
    ended = openheim("run", "--provider", "demo", "--continue", "--cwd", os.fsdecode(folder), "hi")
    assert ended.code == 0, ended.err
    assert len(json.loads(openheim("sessions", "list", "--json").out)) == 2
