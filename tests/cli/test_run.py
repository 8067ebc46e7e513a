"""``openheim run`` against a scripted server: tools on disk, output formats, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Command, texts
from tests.support.openai_server import OpenAIServer
from tests.support.openai_wire import chunk, error, events, text, tool_calls
from tests.support.replies import Reply, raw


def test_tools_read_edit_search_and_write_on_disk(openheim: Command) -> None:
    (openheim.folder / "notes.txt").write_text("alpha\nbeta\n")
    script = [
        tool_calls(("read_file", {"path": "notes.txt"}), ("list_dir", {})),
        tool_calls(("search", {"pattern": "bet."})),
        tool_calls(
            ("edit_file", {"path": "notes.txt", "old_string": "beta", "new_string": "gamma"}),
            ("write_file", {"path": "new/file.txt", "content": "fresh"}),
        ),
        text("All ", "done."),
    ]
    with OpenAIServer(script) as server:
        openheim.use(server)
        ended = openheim("run", "work on the notes")
    assert (ended.code, ended.out) == (0, "All done.\n")
    assert (openheim.folder / "notes.txt").read_text() == "alpha\ngamma\n"
    assert (openheim.folder / "new/file.txt").read_text() == "fresh"
    first, second, third, fourth = (request.json["messages"] for request in server.prompts)
    assert [message["role"] for message in first] == ["system", "user"]
    assert str(openheim.folder) in first[0]["content"]
    assert second[3]["content"].startswith("alpha\nbeta")
    assert second[4]["content"] == "notes.txt"
    assert third[-1]["content"] == "notes.txt:2: beta"
    assert [message["tool_call_id"] for message in fourth[-2:]] == [call["id"] for call in fourth[-3]["tool_calls"]]
    assert len(openheim.history()[0]) == 10


def test_text_is_exactly_the_final_reply(openheim: Command) -> None:
    script = [
        tool_calls(("list_dir", {}), text="Let me look.", thinking="hm"),
        text("The ", "end\n", thinking="secret thought"),
    ]
    with OpenAIServer(script) as server:
        openheim.use(server)
        ended = openheim("run", "hi")
    assert (ended.code, ended.out, ended.err) == (0, "The end\n\n", "")


def test_json_is_one_object(openheim: Command) -> None:
    with OpenAIServer([tool_calls(("list_dir", {})), text("Done.", usage=(20, 3))]) as server:
        openheim.use(server, 'default_model = "m-one"')
        ended = openheim("run", "--output", "json", "hi")
    assert ended.code == 0
    record = ended.json
    assert len(ended.out.splitlines()) == 1
    assert record.pop("session_id") == next((openheim.home / "history").glob("*.jsonl")).stem
    assert record == {
        "status": "completed",
        "stop_reason": "end_turn",
        "text": "Done.",
        "iterations": 2,
        "usage": {"input_tokens": 31, "output_tokens": 8, "cache_creation_tokens": 0, "cache_read_tokens": 0},
        "cost": None,
        "model": "m-one",
        "provider": "test",
        "denied": [],
        "error": None,
    }


def test_stream_json_tells_everything_in_order(openheim: Command) -> None:
    script = [tool_calls(("list_dir", {"path": "."}), ("nope", "{bad"), thinking="hm"), text("a", "b")]
    with OpenAIServer(script) as server:
        openheim.use(server)
        ended = openheim("run", "--output", "stream-json", "hi")
    lines = ended.lines
    types = [line["type"] for line in lines if line["type"] != "tool_update"]
    assert types == [
        "session",
        "message",
        "iteration_start",
        "thinking_delta",
        "message",
        "usage",
        "tool_call",
        "tool_call",
        "tool_result",
        "tool_result",
        "message",
        "message",
        "iteration_start",
        "text_delta",
        "text_delta",
        "message",
        "usage",
        "result",
    ]
    assert len({line["session_id"] for line in lines}) == 1
    numbers = [line["seq"] for line in lines]
    assert numbers == sorted(set(numbers))
    of = {kind: [line for line in lines if line["type"] == kind] for kind in types}
    session = of["session"][0]
    assert (session["cwd"], session["provider"], session["mode"], session["resumed"]) == (
        str(openheim.folder),
        "test",
        "default",
        False,
    )
    assert [call["arguments"] for call in of["tool_call"]] == [{"path": "."}, "{bad"]
    assert {result["is_error"] for result in of["tool_result"]} == {True, False}
    assert [line["message"] for line in of["message"]] == openheim.history()[0]
    assert of["usage"][0]["input_tokens"] == 11
    assert of["result"][0]["text"] == "ab"
    assert set(of["result"][0]) >= {"status", "stop_reason", "error", "denied", "iterations"}


def test_messages_are_on_disk_when_their_line_is_printed(openheim: Command) -> None:
    with OpenAIServer([text("one").hold()]) as server:
        openheim.use(server)
        process = openheim.start("run", "--output", "stream-json", "hi")
        assert process.stdout is not None and process.stderr is not None
        session = json.loads(process.stdout.readline())["session_id"]
        line = json.loads(process.stdout.readline())
        assert line["type"] == "message"
        stored = (openheim.home / "history" / f"{session}.jsonl").read_text().splitlines()
        assert json.loads(stored[-1]) == line["message"]
        server.wait_requests(1)
        server.release()
        process.communicate(timeout=40)
    assert process.returncode == 0


RETRY_NOW = {"retry-after-ms": "1"}
ENDINGS: list[tuple[str, list[Reply], list[str], int, str, str | None]] = [
    ("completed", [text("ok")], [], 0, "completed", None),
    ("bad request", [error(400, "no such thing")], [], 1, "failed", "invalid_request"),
    ("bad key", [error(401, "bad key")], [], 1, "failed", "auth"),
    ("unknown model", [error(404, "no model")], [], 1, "failed", "not_found"),
    ("overflow", [error(400, "too long", code="context_length_exceeded")], [], 1, "failed", "context_overflow"),
    ("iterations", [tool_calls(("list_dir", {}), text="so far")] * 2, ["--max-iterations", "2"], 3, "limited", None),
    ("output limit", [text("cut", finish="length")], [], 3, "limited", None),
    ("refusal", [text("It beg", finish="content_filter")], [], 4, "refused", None),
    ("denied", [tool_calls(("list_dir", {})), text("ok")], ["--deny", "list_dir"], 5, "denied", None),
    ("overloaded", [error(503, "busy", headers=RETRY_NOW)] * 4, [], 75, "failed", "overloaded"),
    ("rate limit", [error(429, "slow down", headers=RETRY_NOW)] * 4, [], 75, "failed", "rate_limit"),
    ("long rate limit", [error(429, "tomorrow", headers={"retry-after": "86400"})], [], 75, "failed", "rate_limit"),
    ("cut stream", [events(chunk({"content": "half"}), done=False).ending("reset")], [], 75, "failed", "connection"),
]


@pytest.mark.parametrize(
    ("script", "options", "code", "status", "kind"), [case[1:] for case in ENDINGS], ids=[case[0] for case in ENDINGS]
)
def test_exit_codes(
    openheim: Command, script: list[Reply], options: list[str], code: int, status: str, kind: str | None
) -> None:
    with OpenAIServer(script) as server:
        openheim.use(server)
        ended = openheim("run", "--output", "json", *options, "hi")
    assert ended.code == code, ended.err
    assert ended.json["status"] == status
    assert (ended.json["error"] or {}).get("kind") == kind
    assert len(server.prompts) == len(script)
    if kind is not None:
        assert ended.error
    assert texts(openheim.history()[0])[0] == "user: hi"


def test_limits_leave_the_reply_so_far_on_stdout_and_a_note_on_stderr(openheim: Command) -> None:
    with OpenAIServer([tool_calls(("list_dir", {}), text="so far")]) as server:
        openheim.use(server)
        ended = openheim("run", "--max-iterations", "1", "hi")
    assert (ended.code, ended.out) == (3, "so far\n")
    assert ended.err == "note: stopped after 1 model calls (see --max-iterations)\n"


def test_a_time_limit_cancels_the_turn(openheim: Command) -> None:
    with OpenAIServer([text("so ", "far").hold(after=2)]) as server:
        openheim.use(server)
        ended = openheim("run", "--timeout", "0.5", "--output", "json", "hi")
        server.requests[0].wait_left()
    assert (ended.code, ended.json["status"], ended.json["stop_reason"]) == (3, "limited", "cancelled")
    assert texts(openheim.history()[0]) == ["user: hi", "assistant: so "]


def test_a_reply_without_text_is_noted(openheim: Command) -> None:
    with OpenAIServer([text()]) as server:
        openheim.use(server)
        ended = openheim("run", "hi")
    assert (ended.code, ended.out) == (0, "\n")
    assert ended.err == "warning: the model ended its reply without any text\n"


def test_the_gravest_cause_is_told(openheim: Command) -> None:
    with OpenAIServer([tool_calls(("list_dir", {})), text("no", finish="content_filter")]) as server:
        openheim.use(server)
        ended = openheim("run", "--deny", "list_dir", "--output", "json", "hi")
    assert (ended.code, ended.json["status"]) == (4, "refused")
    assert ended.json["denied"] == [{"tool": "list_dir", "reason": "the rule list_dir denies it"}]


def test_retries_are_told(openheim: Command) -> None:
    with OpenAIServer([error(503, "busy", headers=RETRY_NOW), text("ok")]) as server:
        openheim.use(server)
        ended = openheim("run", "--output", "stream-json", "hi")
    (retry,) = [line for line in ended.lines if line["type"] == "retry"]
    assert retry["attempt"] == 2
    assert "busy" in retry["error"]
    assert ended.code == 0


@pytest.mark.parametrize("kind", ["openai", "openai_compatible"])
def test_both_kinds_send_the_model_and_their_own_name_for_the_cap(openheim: Command, kind: str) -> None:
    with OpenAIServer([text("ok")]) as server:
        openheim.use(server, "max_tokens = 77", kind=kind)
        assert openheim("run", "--model", "m-two", "hi").code == 0
    body = server.prompts[0].json
    assert body["model"] == "m-two"
    assert body["max_completion_tokens" if kind == "openai" else "max_tokens"] == 77
    assert ("max_tokens" in body) is (kind != "openai")


def test_modes_and_rules(openheim: Command) -> None:
    write = tool_calls(("write_file", {"path": "a/b.txt", "content": "x"}))
    for options, written, code in (
        (["--mode", "dontAsk"], False, 5),
        (["--mode", "dontAsk", "--allow", "write_file(a/*)"], True, 0),
        (["--mode", "plan"], False, 5),
        (["--deny", "write_file(a/**)"], False, 5),
        ([], True, 0),
    ):
        (openheim.folder / "a/b.txt").unlink(missing_ok=True)
        with OpenAIServer([write, text("ok")]) as server:
            openheim.use(server)
            ended = openheim("run", *options, "hi")
        assert (ended.code, (openheim.folder / "a/b.txt").exists()) == (code, written), options
    names = [tool["function"]["name"] for tool in server.prompts[0].json["tools"]]
    assert names == sorted(names)


def test_rules_cannot_be_avoided_by_another_spelling(openheim: Command) -> None:
    (openheim.folder / "secret").mkdir()
    (openheim.folder / "secret/key").write_text("canary")
    (openheim.folder / "link").symlink_to("secret")
    paths = ["secret/key", "./secret/key", "x/../secret/key", "link/key", str(openheim.folder / "secret/key")]
    with OpenAIServer([tool_calls(*(("read_file", {"path": path}) for path in paths)), text("ok")]) as server:
        openheim.use(server)
        ended = openheim("run", "--deny", "read_file(secret/**)", "--output", "json", "hi")
    assert len(ended.json["denied"]) == len(paths)
    assert "canary" not in json.dumps(openheim.history())


def test_rules_about_no_tool_are_told(openheim: Command) -> None:
    with OpenAIServer([text("ok")]) as server:
        openheim.use(server)
        ended = openheim("run", "--deny", "write_fil(a)", "--allow", "*_file", "--allow", "Bash(rm *)", "hi")
    assert (ended.code, ended.out) == (0, "ok\n")
    assert ended.err.splitlines() == [
        "warning: the rule Bash(rm *): no tool is called Bash",
        "warning: the rule write_fil(a): no tool is called write_fil; did you mean write_file?",
    ]


def test_cwd_is_directory_and_boundary(openheim: Command, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (openheim.folder / "outside.txt").write_text("canary")
    calls = tool_calls(
        ("write_file", {"path": "in.txt", "content": "x"}),
        ("read_file", {"path": f"../{openheim.folder.name}/outside.txt"}),
    )
    with OpenAIServer([calls, text("ok")]) as server:
        openheim.use(server)
        openheim("run", "--cwd", str(other), "hi")
    assert (other / "in.txt").exists()
    assert "outside the work directory" in server.prompts[1].json["messages"][-1]["content"]


def test_work_dir_of_the_settings_is_the_boundary(openheim: Command) -> None:
    (openheim.folder / "sub").mkdir()
    (openheim.folder / "top.txt").write_text("top")
    calls = tool_calls(("read_file", {"path": "../top.txt"}), ("list_dir", {}))
    with OpenAIServer([calls, text("ok")]) as server:
        openheim.use(server, top=f'work_dir = "{openheim.folder}"')
        assert openheim("run", "--cwd", "sub", "hi").code == 0
    assert server.prompts[1].json["messages"][-2]["content"].startswith("top")


PNG = bytes.fromhex("89504e470d0a1a0a") + b"rest"


def test_images_are_attached(openheim: Command) -> None:
    (openheim.folder / "a.png").write_bytes(PNG)
    (openheim.folder / "b.png").write_bytes(b"not an image")
    with OpenAIServer([text("a cat")]) as server:
        openheim.use(server)
        assert openheim("run", "--image", "a.png", "what is it?").code == 0
    parts = server.prompts[0].json["messages"][-1]["content"]
    assert parts[1]["image_url"]["url"].startswith("data:image/png;base64,iVBORw0KGgpyZXN0")
    for name in ("b.png", "none.png"):
        ended = openheim("run", "--image", name, "what is it?")
        assert (ended.code, name in ended.error) == (2, True)


def test_the_answer_of_a_page_that_is_no_model_service(openheim: Command) -> None:
    with OpenAIServer([raw("<html>sign in</html>", content_type="text/html")]) as server:
        openheim.use(server)
        ended = openheim("run", "hi")
    assert ended.code == 1
    assert ended.out == ""
    assert ended.error


def no_key(command: Command) -> dict[str, Any]:
    command.configure('[providers.openai]\ndefault_model = "m"\n')
    return {}


def test_usage_and_configuration_errors_send_nothing(openheim: Command, tmp_path: Path) -> None:
    with OpenAIServer(default=text("never")) as server:
        for arguments, more, complaint in (
            (["run"], "", "there is no prompt"),
            (["run", " "], "", "there is no prompt"),
            (["run", "--model", "m9", "hi"], 'models = ["m1", "m2"]', "unknown model 'm9' (there are: m1, m2)"),
            (["run", "--provider", "tset", "hi"], "", "unknown provider 'tset' (did you mean test? there are: "),
            (["run", "--mode", "fast", "hi"], "", "unknown mode 'fast'"),
            (["run", "--allow", "a b", "hi"], "", "cannot read the rule 'a b'"),
            (["run", "--cwd", "nowhere", "hi"], "", "nowhere"),
            (["run", "--nope", "hi"], "", "--nope"),
            (["run", "--config", str(tmp_path / "none.toml"), "hi"], "", "there is no config file"),
            (["run", "hi"], "timeout_secs = -3", "line 6: providers.test.timeout_secs must be more than 0"),
            (["run", "hi"], "flavour = 3", "flavour"),
            (["run", "hi"], 'api_key = "sk-canary\u00e9"', "that no key has"),
            (["run", "hi"], "[broken", "line 6: not valid TOML"),
            (["run", "hi"], "[tools.fs]\nnope = 1", "nope"),
        ):
            openheim.use(server, more)
            ended = openheim(*arguments)
            assert ended.code == 2, (arguments, ended)
            assert complaint in ended.error
            assert ended.out == ""
            assert "sk-canary" not in ended.err
    assert not server.requests


def test_a_provider_without_a_key_is_refused_before_anything_is_sent(openheim: Command) -> None:
    openheim.configure('[providers.openai]\ndefault_model = "m"\n')
    ended = openheim("run", "--output", "json", "hi")
    assert ended.code == 2
    assert "OPENAI_API_KEY" in ended.error
    assert ended.json["error"]["kind"] == "config"
    assert ended.json["session_id"] is None


def test_a_provider_whose_package_is_missing_names_it(openheim: Command) -> None:
    openheim.hide("openheim-provider-gemini")
    openheim.configure('[providers.gemini]\napi_key = "k"\n')
    ended = openheim("run", "hi")
    assert ended.code == 2
    assert "pip install openheim-provider-gemini" in ended.error


def test_without_any_provider_the_demo_answers_and_says_so(openheim: Command) -> None:
    (openheim.folder / "hello.txt").write_text("x")
    ended = openheim("run", "What is in this directory?")
    assert ended.code == 0
    assert "hello.txt" in ended.out
    assert ended.err.count("\n") == 1
    assert "OPENAI_API_KEY" in ended.err


def test_another_model_takes_over_and_says_so(openheim: Command) -> None:
    with OpenAIServer([error(401, "no such key")]) as first, OpenAIServer([text("from the second")]) as second:
        entry = f'[providers.second]\napi_base = "{second.base_url}"'
        openheim.use(first, f'default_model = "m1"\nfallback = ["second/m2"]\n{entry}', top='default_provider = "test"')
        ended = openheim("run", "--output", "stream-json", "hi")
    assert ended.code == 0
    assert second.prompts[0].json["model"] == "m2"
    (told,) = [line for line in ended.lines if line["type"] == "model_fallback"]
    assert {name: told[name] for name in ("provider", "model", "failed_provider", "failed_model")} == {
        "provider": "second",
        "model": "m2",
        "failed_provider": "test",
        "failed_model": "m1",
    }
    assert "no such key" in told["error"]
    result = ended.lines[-1]
    assert (result["provider"], result["model"], result["text"]) == ("second", "m2", "from the second")
    assert [line["message"].get("provider") for line in ended.lines if line["type"] == "message"] == [None, "second"]


def test_a_fallback_that_cannot_be_is_told_before_anything_is_sent(openheim: Command) -> None:
    with OpenAIServer([text("never")]) as server:
        openheim.use(server, 'fallback = ["nobody/m2"]')
        ended = openheim("run", "hi")
        assert not server.prompts
    assert ended.code == 2
    assert "config.toml" in ended.err and "line 6" in ended.err and "unknown provider 'nobody'" in ended.err


def test_a_priced_turn_tells_its_cost(openheim: Command) -> None:
    with OpenAIServer([text("ok", usage=(1000, 100)), text("ok", usage=(1000, 100))]) as server:
        openheim.use(server, "price = { input = 2, output = 10 }")
        assert openheim("run", "--output", "json", "hi").json["cost"] == 0.003
        assert (
            "- Cost: 0.0030\n"
            in openheim("sessions", "show", next((openheim.home / "history").glob("*.jsonl")).stem).out
        )
        openheim.use(server, "price = { input = 2 }")
        assert openheim("run", "--output", "json", "hi").json["cost"] is None


SCHEMA = '{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}'


def test_an_answer_that_matches_a_schema(openheim: Command) -> None:
    (openheim.folder / "city.json").write_text(SCHEMA)
    with OpenAIServer([text("Ulm"), text('{"city": ', '"Ulm"}')]) as server:
        openheim.use(server)
        ended = openheim("run", "--schema", "city.json", "--output", "json", "which?")
    assert (ended.code, ended.json["value"], ended.json["text"]) == (0, {"city": "Ulm"}, '{"city": "Ulm"}')
    assert "does not match" in server.prompts[1].json["messages"][-1]["content"]


def test_an_answer_that_never_matches_is_a_failure(openheim: Command) -> None:
    (openheim.folder / "city.json").write_text(SCHEMA)
    with OpenAIServer([text("Ulm")] * 2) as server:
        openheim.use(server)
        ended = openheim("run", "--schema", "city.json", "--output", "json", "which?")
    record = ended.json
    assert (ended.code, record["status"], record["error"]["kind"]) == (1, "failed", "schema_mismatch")
    assert record["value"] is None and record["text"] == "Ulm"


@pytest.mark.parametrize("content", [None, "{", "[]", "\ud800" * 3], ids=["missing", "broken", "list", "bytes"])
def test_a_file_that_is_no_schema_is_told_before_anything_is_sent(openheim: Command, content: str | None) -> None:
    if content is not None:
        (openheim.folder / "s.json").write_bytes(content.encode("utf-8", "surrogatepass"))
    with OpenAIServer([]) as server:
        openheim.use(server)
        ended = openheim("run", "--schema", "s.json", "which?")
        assert (ended.code, server.requests) == (2, [])
    assert "s.json" in ended.error
