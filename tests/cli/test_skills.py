"""``openheim skills``."""

from __future__ import annotations

from pathlib import Path

from tests.cli.command import Command


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_list(openheim: Command) -> None:
    put(openheim.home / "skills/style.md", "---\ndescription: How we write\n---\n# Style\n")
    put(openheim.home / "skills/review.md", "# Mine\n")
    (openheim.folder / ".git").mkdir()
    put(openheim.folder / ".openheim/skills/review.md", "# Theirs\n")
    ended = openheim("skills", "list", "--json")
    assert ended.json == [
        {"name": "review", "source": "user", "description": "Mine"},
        {"name": "style", "source": "user", "description": "How we write"},
    ]
    assert "is not trusted" in ended.err
    openheim("config", "trust")
    ended = openheim("skills", "list", "--json")
    assert ended.json[0] == {"name": "review", "source": "project", "description": "Theirs"}
    assert ended.err == ""
    lines = openheim("skills", "list").out.splitlines()
    assert [line.split() for line in lines] == [
        ["NAME", "SOURCE", "DESCRIPTION"],
        ["review", "project", "Theirs"],
        ["style", "user", "How", "we", "write"],
    ]


def test_list_of_nothing_says_where_to_put_some(openheim: Command) -> None:
    ended = openheim("skills", "list")
    assert (ended.code, ended.out) == (0, "")
    assert str(openheim.home / "skills") in ended.err
    assert openheim("skills", "list", "--json").json == []


def test_the_data_folder_moves_them(openheim: Command, tmp_path: Path) -> None:
    openheim.configure(f'data_dir = "{tmp_path}/data"\n')
    put(tmp_path / "data/skills/here.md", "# Here\n")
    assert [skill["name"] for skill in openheim("skills", "list", "--json").json] == ["here"]
