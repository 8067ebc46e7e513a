"""The tutorials build exactly the example plugins, and their commands work in the order in which they stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import Block, blocks
from tests.examples.installing import EXAMPLES, environment, run

TUTORIALS = [
    ("docs/tutorial/your-first-tool-plugin.md", "openheim-tools-shout", set()),
    ("docs/tutorial/your-first-provider-plugin.md", "openheim-provider-parrot", {"parrot.toml"}),
]

#: Not run: pytest runs this test, so it is there, and a package index may not be.
INSTALL_PYTEST = "pip install pytest"


def title(block: Block) -> str | None:
    """The file that a block is said to be, in ``python title="src/x.py"``."""
    _, found, rest = block.info.partition('title="')
    return rest.partition('"')[0] if found else None


def files_of(example: str) -> dict[str, str]:
    folder = EXAMPLES / example
    return {
        path.relative_to(folder).as_posix(): path.read_text("utf-8")
        for path in folder.rglob("*")
        if path.is_file() and not any(part == "__pycache__" or part.endswith("_cache") for part in path.parts)
    }


@pytest.mark.parametrize(("page", "example", "extra"), TUTORIALS)
def test_shows_every_file_as_it_is(page: str, example: str, extra: set[str]) -> None:
    shown = {name: block.text for block in blocks(page) if (name := title(block)) is not None}
    kept = files_of(example)
    assert set(shown) - extra == set(kept)
    for name in kept:
        assert shown[name] == kept[name], name


@pytest.mark.parametrize(("page", "example", "extra"), TUTORIALS)
def test_commands_work_in_an_empty_folder(page: str, example: str, extra: set[str], tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    env = environment(tmp_path / "site", tmp_path)
    printed = ""
    commands = 0
    for block in blocks(page):
        name = title(block)
        if name is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(block.text, encoding="utf-8")
        elif block.text.strip() == INSTALL_PYTEST:
            continue
        elif block.language == "sh":
            printed = run("bash", "-e", "-o", "pipefail", "-c", block.text, cwd=folder, environment=env).stdout
            commands += 1
        elif block.language == "text":
            # What a page shows after a command is what the command prints.
            assert printed.endswith(block.text), f"{block} differs from what was printed:\n{printed}"
    assert commands >= 2
