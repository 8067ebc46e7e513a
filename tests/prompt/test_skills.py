"""Skills: their names, where they are, what they say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from openheim.errors import SkillNotFoundError, StorageError
from openheim.prompt.skills import Skill, SkillLibrary, describe, is_skill_name, merged_skills


def put(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("name", ["a", "review", "code-review_2", "ünïcode", "two words", "a.b", ".hidden", "README"])
def test_names_that_are_allowed(tmp_path: Path, name: str) -> None:
    assert is_skill_name(name)
    put(tmp_path / "skills" / f"{name}.md", "text")
    library = SkillLibrary(tmp_path)
    assert library.text(name) == "text"
    assert [skill.name for skill in library.skills()] == [name]


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        ".",
        "..",
        "a/b",
        "/a",
        "a/",
        "a\\b",
        "\\a",
        "..\\a",
        "../secret",
        "a..b",
        "..a",
        "a..",
        "C:",
        "C:a",
        "c:\\a",
        "a\0",
        "a\0.md",
        "a\nb",
        "a\x1b[2J",
        "\udcff",
    ],
)
def test_names_that_are_not(tmp_path: Path, name: str) -> None:
    put(tmp_path / "secret.md", "canary")
    put(tmp_path / "skills" / "a" / "b.md", "canary")
    put(tmp_path / "skills" / "b.md", "text")
    assert not is_skill_name(name)
    library = SkillLibrary(tmp_path)
    with pytest.raises(SkillNotFoundError, match="unknown skill") as caught:
        library.text(name)
    assert "canary" not in str(caught.value)


def test_the_list_has_what_can_be_loaded_and_is_sorted(tmp_path: Path) -> None:
    folder = tmp_path / "skills"
    for name in ("zeta.md", "alpha.md", "Beta.md", "a..b.md", "C:x.md", ".md", "notes.txt", "no-suffix", "a\nb.md"):
        put(folder / name, "text")
    put(folder / "folder.md" / "x.md", "text")
    put(tmp_path / "outside.md", "canary")
    (folder / "out.md").symlink_to(tmp_path / "outside.md")
    (folder / "dangling.md").symlink_to("none.md")
    (folder / "inside.md").symlink_to("alpha.md")
    os.mkfifo(folder / "pipe.md")
    library = SkillLibrary(tmp_path)
    names = [skill.name for skill in library.skills()]
    assert names == ["Beta", "alpha", "inside", "zeta"]
    for name in names:
        assert library.text(name) == "text"
    for name in ("out", "dangling", "pipe", "folder", "notes"):
        with pytest.raises((SkillNotFoundError, StorageError)) as caught:
            library.text(name)
        assert "canary" not in str(caught.value)


def test_a_link_to_the_folder_itself_is_the_user_s_choice(tmp_path: Path) -> None:
    put(tmp_path / "dotfiles" / "a.md", "text")
    (tmp_path / "skills").symlink_to("dotfiles")
    assert SkillLibrary(tmp_path).text("a") == "text"


def test_a_link_that_is_turned_outwards_later_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "skills" / "real.md", "text")
    outside = put(tmp_path / "outside.md", "canary")
    link = tmp_path / "skills" / "link.md"
    link.symlink_to("real.md")
    library = SkillLibrary(tmp_path)
    assert library.text("link") == "text"
    link.unlink()
    link.symlink_to(outside)
    with pytest.raises(StorageError, match="cannot be used"):
        library.text("link")


def test_an_unknown_skill_is_answered_with_the_closest_names(tmp_path: Path) -> None:
    with pytest.raises(SkillNotFoundError) as caught:
        SkillLibrary(tmp_path).text("review")
    assert caught.value.hint == f"there are none; put some into {tmp_path / 'skills'}"
    for name in ("review", "release", "zzz"):
        put(tmp_path / "skills" / f"{name}.md", "text")
    with pytest.raises(SkillNotFoundError, match="unknown skill 'reviwe'") as caught:
        SkillLibrary(tmp_path).text("reviwe")
    assert caught.value.hint.startswith("there are: review")
    with pytest.raises(SkillNotFoundError):
        SkillLibrary(tmp_path).text("Review")


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    put(tmp_path / "skills" / "a.md", b"\xff\xfe")
    with pytest.raises(StorageError, match="not UTF-8"):
        SkillLibrary(tmp_path).text("a")


def test_a_trusted_project_brings_its_own(tmp_path: Path) -> None:
    project = tmp_path / "project"
    put(tmp_path / "skills" / "both.md", "the user's")
    put(tmp_path / "skills" / "mine.md", "mine")
    put(project / ".openheim" / "skills" / "both.md", "the project's")
    put(project / ".openheim" / "skills" / "theirs.md", "theirs")
    assert SkillLibrary(tmp_path, project).skills() == [
        Skill("both", "project", "the project's"),
        Skill("mine", "user", "mine"),
        Skill("theirs", "project", "theirs"),
    ]
    assert SkillLibrary(tmp_path, project).text("both") == "the project's"
    assert SkillLibrary(tmp_path).text("both") == "the user's"
    with pytest.raises(SkillNotFoundError):
        SkillLibrary(tmp_path).text("theirs")


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    file = put(tmp_path / "skills" / "a.md", "one")
    library = SkillLibrary(tmp_path)
    assert library.text("a") == "one"
    put(file, "two, and longer")
    assert library.text("a") == "two, and longer"
    file.unlink()
    with pytest.raises(SkillNotFoundError):
        library.text("a")


@pytest.mark.parametrize(
    ("content", "description"),
    [
        ("", ""),
        ("\n\n# Review code\n\nText", "Review code"),
        ("Plain first line\nsecond", "Plain first line"),
        ("---\nname: x\ndescription: From the head\n---\n# Title\n", "From the head"),
        ("---\r\ndescription: 'quoted: yes'\r\n---\r\ntext\r\n", "quoted: yes"),
        ("---\ndescription: >-\n  over two\n  lines\nother: x\n---\n", "over two lines"),
        ("---\nname: x\n---\n\n# Title behind\n", "Title behind"),
        ("---\nno head at all\n---\ntext", "---"),
        ("x" * 300, "x" * 199 + "…"),
        ("\x1b[31mred", "[31mred"),
    ],
)
def test_descriptions(content: str, description: str) -> None:
    assert describe(content).strip() == description


def test_front_matter_is_not_taught_and_everything_else_is(tmp_path: Path) -> None:
    put(tmp_path / "skills" / "a.md", "---\ndescription: d\n---\n\n  # Title \n---\nrule\n---\n")
    put(tmp_path / "skills" / "b.md", "---\na rule, and no head\n---\n")
    library = SkillLibrary(tmp_path)
    assert library.text("a") == "\n  # Title \n---\nrule\n---\n"
    assert library.text("b") == "---\na rule, and no head\n---\n"


def test_default_skills_come_first_and_each_once() -> None:
    assert merged_skills(["a", "b", "a"], ["c", "b", "c"]) == ("a", "b", "c")
    assert merged_skills([]) == ()
