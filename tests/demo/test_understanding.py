"""Prompts in plain English, and what the demo provider takes them for."""

from __future__ import annotations

import pytest

from openheim_provider_demo.requests import (
    Describe,
    Hello,
    Help,
    ListFiles,
    ReadFile,
    Recall,
    Remember,
    ReplaceText,
    Request,
    Search,
    SummariseFile,
    SummariseText,
    WriteFile,
)
from openheim_provider_demo.understanding import understand

ONE_REQUEST: list[tuple[str, Request]] = [
    ("What is in this directory?", Describe()),
    ("what's in the current folder", Describe()),
    ("What’s in here?", Describe()),  # noqa: RUF001  as phones type it
    ("Could you please tell me what is in this folder?", Describe()),
    ("Summarise this project, please.", Describe()),
    ("summarize the docs folder", Describe("docs")),
    ("What does this project do?", Describe()),
    ("Tell me about this repository", Describe()),
    ("Explain what this project does", Describe()),
    ("What is this?", Describe()),
    ("Look around", Describe()),
    ("What is in docs/reference?", Describe("docs/reference")),
    ("List files", ListFiles()),
    ("list the files in docs", ListFiles("docs")),
    ("Name the files in this directory.", ListFiles()),
    ("Which files are here?", ListFiles()),
    ("ls", ListFiles()),
    ("ls docs/", ListFiles("docs/")),
    ("list all the files and folders in ../other", ListFiles("../other")),
    ("read README.md", ReadFile("README.md")),
    ("Please read the file 'my notes.txt'", ReadFile("my notes.txt")),
    ("Show me the contents of docs/index.md", ReadFile("docs/index.md")),
    ("what is in pyproject.toml?", ReadFile("pyproject.toml")),
    ("What does LICENSE say?", ReadFile("LICENSE")),
    ("cat Makefile", ReadFile("Makefile")),
    ("open src/a.b.py!", ReadFile("src/a.b.py")),
    ("summarise README.md", SummariseFile("README.md")),
    ("Give me a short summary of docs/a.md", SummariseFile("docs/a.md")),
    ("search for Linux", Search("Linux")),
    ('Search for "two words and more" in src', Search("two words and more", "src")),
    ("grep foo in src/a.py", Search("foo", "src/a.py")),
    ("find all mentions of foo in docs", Search("foo", "docs")),
    ("search the docs folder for the word bar", Search("bar", "docs")),
    ("Which files mention foo?", Search("foo")),
    ("where is main defined?", Search("main")),
    ("write hello.txt with Hello, world.", WriteFile("hello.txt", "Hello, world.")),
    ('Write "some text" to notes.txt', WriteFile("notes.txt", "some text")),
    ("write hello to a.txt", WriteFile("a.txt", "hello")),
    ("create a file named notes containing: x and y", WriteFile("notes", "x and y")),
    ("write notes.txt:\nline one\nline two", WriteFile("notes.txt", "line one\nline two")),
    ("create an empty file called a.txt", WriteFile("a.txt", "")),
    ('replace "old" with "new" in a.txt', ReplaceText("a.txt", "old", "new")),
    ("in a.txt replace foo by bar", ReplaceText("a.txt", "foo", "bar")),
    ("Edit a.txt: replace foo with bar everywhere", ReplaceText("a.txt", "foo", "bar", everywhere=True)),
    ("replace all foo with bar in a.txt", ReplaceText("a.txt", "foo", "bar", everywhere=True)),
    ("change foo to bar in src/x.py", ReplaceText("src/x.py", "foo", "bar")),
    ('replace "x" with "" in a.txt', ReplaceText("a.txt", "x", "")),
    ("remember that I like tea and coffee", Remember("I like tea and coffee")),
    ("Remember: the build runs on Linux.", Remember("the build runs on Linux.")),
    ("what do you remember?", Recall()),
    ("What do you remember about the build?", Recall("the build")),
    ("search your memory for tea", Recall("tea")),
    ("help", Help()),
    ("What can you do?", Help()),
    ("Are you a language model?", Help()),
    ("Hello!", Hello()),
    ("hi there", Hello()),
    ("Good morning", Hello()),
]


@pytest.mark.parametrize(("prompt", "request_"), ONE_REQUEST, ids=[prompt for prompt, _ in ONE_REQUEST])
def test_one_request(prompt: str, request_: Request) -> None:
    assert understand(prompt) == (request_,)


@pytest.mark.parametrize(
    ("prompt", "requests"),
    [
        ("list the files and then read README.md", (ListFiles(), ReadFile("README.md"))),
        ("Read a.txt, b.txt and c.txt", (ReadFile("a.txt"), ReadFile("b.txt"), ReadFile("c.txt"))),
        ('write "a and b" to x.txt and read x.txt', (WriteFile("x.txt", "a and b"), ReadFile("x.txt"))),
        ("Read x.txt. Then search for foo in docs.", (ReadFile("x.txt"), Search("foo", "docs"))),
        ("list docs and remember that we looked and read", (ListFiles("docs"), Remember("we looked and read"))),
        ("write a.txt with salt and read b.txt", (WriteFile("a.txt", "salt and read b.txt"),)),
        ("Look at the files here and tell me what this is", (Describe(),)),
    ],
)
def test_joined_requests(prompt: str, requests: tuple[Request, ...]) -> None:
    assert understand(prompt) == requests


@pytest.mark.parametrize(
    ("prompt", "requests"),
    [
        ("Summarise this", (SummariseText("# Tea\n"),)),
        ("What is this text?", (SummariseText("# Tea\n"),)),
        ("What is in this directory?", (Describe(),)),
        ("tell me a joke", ()),
    ],
)
def test_what_is_attached_may_be_meant(prompt: str, requests: tuple[Request, ...]) -> None:
    assert understand(f"{prompt}\n\n[standard input]\n# Tea\n") == requests


@pytest.mark.parametrize(
    "prompt",
    [
        "",
        "?!",
        "tell me a joke",
        "what is the weather",
        "what is openheim",
        "write a poem",
        "read it",
        "delete all files in this directory",
        "read a.txt and sing a song",
        "don't read 'a.txt'",
        "how do I install this project?",
        "x" * 30_000,
    ],
)
def test_not_understood(prompt: str) -> None:
    assert understand(prompt) == ()


@pytest.mark.parametrize(
    "prompt", ["How many files are in this folder?", "Answer a prompt about the files of this directory"]
)
def test_words_about_the_directory_are_guessed_at(prompt: str) -> None:
    assert understand(prompt) == (Describe(guessed=True),)


@pytest.mark.parametrize(
    "prompt",
    [
        "search for a, " * 400 + "zzz",
        "replace " + "a with b in " * 80 + "c",
        "read 'a " * 1500,
        "write " + "to " * 6000 + "a.txt",
        "\ue000 read \ue001",
        "read" + " " * 15_000 + "x",
        "read a" + "?" * 15_000 + "b",
        "list " + "please, " * 2_000 + "x",
        "then " * 3_000,
        "what is " * 120,
        "\"'`" * 3_000,
    ],
)
def test_long_and_strange_prompts_end(prompt: str) -> None:
    """No outcome is right or wrong; the suite's time limit ends what takes too long."""
    assert isinstance(understand(prompt), tuple)
