"""Whole turns with the demo provider: the calls it makes and the answers it composes from their results."""

from __future__ import annotations

import pytest

from openheim import Message, ModelRequest, TextBlock, TextDelta, ToolError
from openheim.errors import ModelNotFoundError
from openheim.messages import ToolResultBlock, ToolUseBlock
from openheim_provider_demo.provider import DemoProvider
from tests.demo.conversation import FS, Conversation, canned

pytestmark = pytest.mark.anyio

LISTING = ".git/\nLICENSE\nREADME.md\ndocs/\nlatest -> docs\npyproject.toml\n"
README = (
    "# Tea timer\n\n[![badge](x.svg)](y)\n\nA timer for **tea**. It rings.\n\n## Use\n\n```sh\n# not a heading\n```\n"
)
PYPROJECT = '[project]\nname = "tea-timer"\nversion = "1.0"\ndescription = "Rings when the tea is ready"\n'


async def test_describes_a_directory_by_its_files() -> None:
    conversation = Conversation(
        canned({"list_dir": LISTING, "read_file README.md": README, "read_file pyproject.toml": PYPROJECT})
    )
    spoken = await conversation.say("What is in this directory?")
    assert spoken.calls == [
        ("list_dir", {}),
        ("read_file", {"path": "README.md"}),
        ("read_file", {"path": "pyproject.toml"}),
    ]
    assert [reply.finish for reply in spoken.replies] == ["tool_use", "tool_use", "end_turn"]
    assert spoken.answer == (
        "This directory holds 2 folders and 4 files.\n\n"
        "Folders: .git, docs\nFiles: LICENSE, README.md, latest -> docs, pyproject.toml\n\n"
        "README.md: Tea timer. A timer for tea.\n"
        "pyproject.toml: tea-timer. Rings when the tea is ready"
    )


async def test_describes_a_directory_without_telling_files() -> None:
    spoken = await Conversation(canned({"list_dir": "a.csv\n[1 more entry]"})).say("Summarise the data folder")
    assert spoken.calls == [("list_dir", {"path": "data"})]
    assert spoken.answer == "data holds 1 file.\n\nFiles: a.csv"


async def test_reads_in_the_directory_asked_for() -> None:
    conversation = Conversation(canned({"list_dir": "README", "read_file": "Just text. And more."}))
    spoken = await conversation.say("What is in docs/?")
    assert spoken.calls[1] == ("read_file", {"path": "docs/README"})
    assert "README: Just text." in spoken.answer


async def test_says_when_it_guessed() -> None:
    spoken = await Conversation(canned({"list_dir": "a.csv"})).say("How many files are in this folder?")
    assert "not a language model" in spoken.answer
    assert "1 file" in spoken.answer


@pytest.mark.parametrize(
    ("prompt", "results", "call", "answer"),
    [
        (
            "List files",
            {"list_dir": "a\nb/"},
            ("list_dir", {}),
            "This directory holds 1 folder and 1 file:\n\n- a\n- b/",
        ),
        ("List docs", {"list_dir": "(empty directory)"}, ("list_dir", {"path": "docs"}), "docs is empty."),
        (
            "Read a.md",
            {"read_file": "one\n```\ntwo\n"},
            ("read_file", {"path": "a.md"}),
            "a.md:\n\n````\none\n```\ntwo\n````",
        ),
        ("Read a.md", {"read_file": ""}, ("read_file", {"path": "a.md"}), "a.md is empty."),
        (
            "Summarise a.md",
            {"read_file": README},
            ("read_file", {"path": "a.md"}),
            "a.md has 11 lines and 18 words.\nIn short: Tea timer. A timer for tea.\nIts parts: Tea timer, Use",
        ),
        (
            "Summarise a.py",
            {"read_file": '"""Makes tea."""\n\nclass Pot:\n    pass\n\nasync def boil(): ...\n'},
            ("read_file", {"path": "a.py"}),
            "a.py has 6 lines and 9 words.\nIn short: Makes tea.\nIts parts: Pot, boil",
        ),
        (
            "Search for f(x) in src",
            {"search": "a.py:1: f(x)\na.py:9: y = f(x)\nb.py:2: f(x)"},
            ("search", {"pattern": r"f\(x\)", "path": "src"}),
            '3 lines in 2 files in src contain "f(x)":\n\n- a.py:1: f(x)\n- a.py:9: y = f(x)\n- b.py:2: f(x)',
        ),
        ("Search for tea", {"search": "no matches"}, ("search", {"pattern": "tea"}), 'Nothing here contains "tea".'),
        (
            'Write "tea, é" to a.txt',
            {"write_file": "ok"},
            ("write_file", {"path": "a.txt", "content": "tea, é"}),
            "Done: a.txt holds 7 bytes now.",
        ),
        (
            'Replace "tea" with "coffee" in a.txt',
            {"edit_file": "ok"},
            ("edit_file", {"path": "a.txt", "old_string": "tea", "new_string": "coffee"}),
            'Done: "tea" is "coffee" in a.txt now.',
        ),
        (
            'Replace all "tea" with "coffee" in a.txt',
            {"edit_file": "ok"},
            ("edit_file", {"path": "a.txt", "old_string": "tea", "new_string": "coffee", "replace_all": True}),
            'Done: "tea" is "coffee" in a.txt now.',
        ),
        (
            "Remember that tea is hot",
            {"remember": "saved as #1"},
            ("remember", {"content": "tea is hot"}),
            "Noted: tea is hot",
        ),
        (
            "What do you remember about tea?",
            {"search_memory": "#1 2026-01-01 tea is hot"},
            ("search_memory", {"query": "tea"}),
            "This is what I find in memory about tea:\n\n#1 2026-01-01 tea is hot",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 40 else "",
)
async def test_one_call_and_an_answer(
    prompt: str, results: dict[str, str | Exception], call: tuple[str, dict[str, object]], answer: str
) -> None:
    spoken = await Conversation(canned(results)).say(prompt)
    assert spoken.calls == [call]
    assert spoken.answer == answer


async def test_several_requests_are_done_in_order() -> None:
    results: dict[str, str | Exception] = {"list_dir": "a.txt", "read_file": "tea", "write_file": "ok"}
    spoken = await Conversation(canned(results)).say('List the files, then write "tea" to a.txt, then read a.txt')
    assert [name for name, _ in spoken.calls] == ["list_dir", "write_file", "read_file"]
    assert [len(reply.content) for reply in spoken.replies] == [1, 1, 1, 1]
    assert spoken.answer.index("- a.txt") < spoken.answer.index("Done: a.txt") < spoken.answer.index("```")


async def test_the_same_call_twice_gets_its_own_result_each_time() -> None:
    texts = iter(("tea", "coffee"))

    async def answer(name: str, _arguments: dict[str, object]) -> str:
        return next(texts) if name == "read_file" else "ok"

    spoken = await Conversation(answer).say('Read a.txt, then write "coffee" to a.txt, then read a.txt')
    assert [name for name, _ in spoken.calls] == ["read_file", "write_file", "read_file"]
    assert spoken.answer.index("tea") < spoken.answer.index("coffee\n```")


@pytest.mark.parametrize(
    ("prompt", "tool"),
    [
        ("What is in this directory?", "list_dir"),
        ("Read a.txt", "read_file"),
        ('Write "x" to a.txt', "write_file"),
        ("Remember that tea is hot", "remember"),
    ],
)
async def test_a_failed_or_denied_call_is_reported_as_it_is(prompt: str, tool: str) -> None:
    conversation = Conversation(canned({tool: ToolError(f"Error: denied: the rules forbid {tool}\nhere")}))
    spoken = await conversation.say(prompt)
    assert len(spoken.calls) == 1
    assert spoken.answer == f"{tool} did not succeed: denied: the rules forbid {tool} here"


async def test_a_file_that_cannot_be_read_does_not_hide_the_listing() -> None:
    conversation = Conversation(canned({"list_dir": "README.md\nb.txt", "read_file": ToolError("not UTF-8")}))
    spoken = await conversation.say("What is in this directory?")
    assert "Files: README.md, b.txt" in spoken.answer
    assert "README.md: read_file did not succeed: not UTF-8" in spoken.answer


@pytest.mark.parametrize(
    ("prompt", "package"),
    [
        ("List files", "openheim-tools-fs"),
        ('Write "x" to a.txt', "openheim-tools-fs"),
        ("Remember that tea is hot", "openheim-memory"),
    ],
)
async def test_a_missing_tool_is_named_with_its_package(prompt: str, package: str) -> None:
    spoken = await Conversation(canned({}), tools=()).say(prompt)
    assert spoken.calls == []
    assert f"pip install {package}" in spoken.answer


async def test_describes_a_directory_when_files_cannot_be_read() -> None:
    spoken = await Conversation(canned({"list_dir": LISTING}), tools=("list_dir",)).say("What is in this directory?")
    assert [name for name, _ in spoken.calls] == ["list_dir"]
    assert "README.md" in spoken.answer


@pytest.mark.parametrize("prompt", ["Tell me a joke", "help", "hello"])
async def test_says_what_it_is_and_what_it_can_do(prompt: str) -> None:
    spoken = await Conversation(canned({}), tools=FS).say(prompt)
    assert "not a language model" in spoken.answer
    assert "- Read README.md\n" in spoken.answer
    assert "(needs openheim-memory)" in spoken.answer
    assert "openheim doctor" in spoken.answer


async def test_each_example_of_its_help_is_understood() -> None:
    spoken = await Conversation(canned({}), tools=()).say("help")
    examples = [line[2:].partition(" (needs")[0] for line in spoken.answer.splitlines() if line.startswith("- ")]
    assert len(examples) >= 9
    for example in examples:
        assert "did not understand" not in (await Conversation(canned({}), tools=()).say(example)).answer, example


async def test_streams_word_by_word() -> None:
    spoken = await Conversation(canned({"list_dir": "a\nb"})).say("List files")
    assert "".join(spoken.pieces) == spoken.answer
    assert len(spoken.pieces) == len(spoken.answer.split())


async def test_the_same_conversation_gets_the_same_replies() -> None:
    results: dict[str, str | Exception] = {"list_dir": LISTING, "read_file": README}
    first, second = Conversation(canned(results)), Conversation(canned(results))
    for prompt in ("What is in this directory?", "List files", "joke"):
        assert (await first.say(prompt)).replies == (await second.say(prompt)).replies


async def test_call_ids_differ_throughout_a_conversation() -> None:
    conversation = Conversation(canned({"list_dir": LISTING, "read_file": README}))
    for _ in range(3):
        await conversation.say("What is in this directory?")
    ids = [use.id for message in conversation.messages for use in message.tool_uses]
    assert ids == [f"demo-{number}" for number in range(1, 10)]
    # Context fitting may drop the oldest turns; the numbers still go on.
    last = [at for at, message in enumerate(conversation.messages) if message.role == "user"][-1]
    conversation.messages = conversation.messages[last:]
    await conversation.say("List files")
    assert conversation.messages[-3].tool_uses[0].id == "demo-10"


async def test_another_providers_turns_are_no_obstacle() -> None:
    messages = [
        Message("user", (TextBlock("List files"),)),
        Message("assistant", (ToolUseBlock("x1", "list_dir", "{"), ToolUseBlock("x2", "list_dir", "{}"))),
        Message("tool", (ToolResultBlock("x1", "list_dir", "bad", is_error=True),)),
        Message("tool", (ToolResultBlock("x2", "list_dir", "tea.txt"),)),
    ]
    request = Conversation(canned({})).request()
    request.messages = messages
    reply = await DemoProvider().generate(request, lambda delta: None)
    assert "tea.txt" in Message("assistant", reply.content).text


async def test_usage_counts_a_quarter_of_the_bytes() -> None:
    request = ModelRequest("demo", "s" * 40, [Message("user", (TextBlock("é" * 20),))])
    reply = await DemoProvider().generate(request, lambda delta: None)
    assert reply.usage is not None
    assert reply.usage.input_tokens == 20
    assert reply.usage.output_tokens == -(-len(Message("assistant", reply.content).text.encode()) // 4)


async def test_a_cap_on_the_reply_cuts_it() -> None:
    conversation = Conversation(canned({}))
    conversation.messages.append(Message("user", (TextBlock("help"),)))
    deltas: list[TextDelta] = []
    reply = await conversation.provider.generate(conversation.request(max_tokens=5), deltas.append)  # type: ignore[arg-type]  # text only
    assert reply.finish == "max_tokens"
    assert reply.usage is not None
    assert 0 < reply.usage.output_tokens <= 5
    assert "".join(delta.text for delta in deltas) == Message("assistant", reply.content).text


async def test_another_model_is_refused() -> None:
    with pytest.raises(ModelNotFoundError, match=r"gpt-4o.*demo"):
        await DemoProvider().generate(ModelRequest("gpt-4o", "", []), lambda delta: None)
    assert [model.id for model in await DemoProvider().models()] == ["demo"]
