"""``openheim run`` with sessions that go on, skills and trusted projects."""

from __future__ import annotations

from pathlib import Path

from openheim.config.trust import TrustStore
from tests.cli.command import Command, texts
from tests.support.openai_server import OpenAIServer
from tests.support.openai_wire import text


def test_a_session_goes_on_by_its_id_or_as_the_newest_of_its_directory(openheim: Command, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with OpenAIServer([text("one"), text("elsewhere"), text("two"), text("three")]) as server:
        openheim.use(server)
        first = openheim("run", "--output", "json", "first").json["session_id"]
        openheim("run", "--cwd", str(other), "in another place")
        assert openheim("run", "--continue", "second").out == "two\n"
        ended = openheim("run", "--session", first[:8], "--output", "stream-json", "third")
    assert ended.lines[0]["resumed"] is True
    assert ended.lines[0]["session_id"] == first
    sent = server.prompts[-1].json["messages"]
    assert [message["content"] for message in sent[1:]] == ["first", "one", "second", "two", "third"]
    (long,) = [session for session in openheim.history() if len(session) == 6]
    assert texts(long)[-1] == "assistant: three"


def test_what_cannot_be_gone_on_with(openheim: Command) -> None:
    nothing = openheim("run", "--session", "550e8400", "--output", "json", "hi")
    assert (nothing.code, nothing.json["status"]) == (2, "failed")
    for arguments, complaint in (
        (["--continue"], "there is no session"),
        (["--session", "550e8400"], "550e8400"),
        (["--session", "550e8400", "--continue"], "exclude each other"),
    ):
        ended = openheim("run", "--provider", "demo", *arguments, "hi")
        assert ended.code == 2, ended
        assert complaint in ended.error
    openheim("run", "--provider", "demo", "hello")
    ended = openheim("run", "--continue", "--skills", "x", "hi")
    assert (ended.code, "--skills" in ended.error) == (2, True)


def test_skills_stand_in_the_prompt_and_come_back_with_the_session(openheim: Command) -> None:
    folder = openheim.home / "skills"
    folder.mkdir(parents=True)
    for name in ("a", "b"):
        (folder / f"{name}.md").write_text(f"How to do {name}.")
    with OpenAIServer(default=text("ok")) as server:
        openheim.use(server)
        assert openheim("run", "--skills", "a,b", "hi").code == 0
        assert openheim("run", "--continue", "more").code == 0
        ended = openheim("run", "--skills", "c", "hi")
    assert ended.code == 2
    assert "c" in ended.error
    systems = [request.json["messages"][0]["content"] for request in server.prompts]
    assert "### a\n\nHow to do a." in systems[0]
    assert systems[0].index("How to do a.") < systems[0].index("How to do b.")
    assert systems[0] == systems[1]


def test_settings_of_a_project_count_once_it_is_trusted(openheim: Command) -> None:
    project = openheim.folder / ".openheim"
    project.mkdir()
    (project / "config.toml").write_text('[permissions]\nmode = "plan"\n')
    (openheim.folder / "AGENTS.md").write_text("Mind the gap.")
    with OpenAIServer(default=text("ok")) as server:
        openheim.use(server)
        untrusted = openheim("run", "--output", "stream-json", "hi")
        trusted = openheim("run", "--trust", "--output", "stream-json", "hi")
    assert untrusted.lines[0]["mode"] == "default"
    assert "not trusted" in untrusted.err
    assert trusted.lines[0]["mode"] == "plan"
    assert all("Mind the gap." in request.json["messages"][0]["content"] for request in server.prompts)


def test_a_session_goes_on_under_the_rules_of_its_own_project(openheim: Command, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    for folder, rules in ((openheim.folder, 'deny = ["write_file"]'), (theirs, 'mode = "plan"')):
        (folder / ".openheim").mkdir(parents=True)
        (folder / ".openheim/config.toml").write_text(f"max_iterations = 7\n[permissions]\n{rules}\n")
        TrustStore(openheim.home / "trust.json").decide(folder, trusted=True)
    session = openheim("run", "--provider", "demo", "--output", "json", "help").json["session_id"]
    ended = openheim("run", "--session", session, "--output", "json", "Write x to w.txt", cwd=theirs)
    assert [call["tool"] for call in ended.json["denied"]] == ["write_file"]
    assert not (openheim.folder / "w.txt").exists()
    # In another directory it is under that one's.
    ended = openheim("run", "--session", session, "--cwd", str(tmp_path), "Write x to w.txt")
    assert (tmp_path / "w.txt").read_text() == "x"


def test_a_policy_holds_over_options(openheim: Command, tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('max_iterations = 3\n[permissions]\nmode = "plan"\n')
    with OpenAIServer([text("ok")]) as server:
        openheim.use(server)
        ended = openheim(
            "run",
            "--mode",
            "bypassPermissions",
            "--output",
            "stream-json",
            "hi",
            env={"OPENHEIM_POLICY_FILE": str(policy)},
        )
    assert ended.lines[0]["mode"] == "plan"
    assert "warning: permissions.mode is 'plan' by the managed policy" in ended.err


def test_a_session_in_use_elsewhere_exits_with_75(openheim: Command) -> None:
    with OpenAIServer([text("one"), text("two", "!").hold(after=2), text("three")]) as server:
        openheim.use(server)
        session = openheim("run", "--output", "json", "first").json["session_id"]
        running = openheim.start("run", "--session", session, "second")
        server.wait_requests(2)
        ended = openheim("run", "--session", session, "--output", "json", "third")
        assert ended.code == 75
        assert ended.json["error"]["kind"] == "session_locked"
        assert str(running.pid) in ended.error
        server.release()
        running.communicate(timeout=40)
    assert running.returncode == 0
