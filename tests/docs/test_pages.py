"""The pages hold together: links lead somewhere, code is code, settings are settings."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.docs.pages import CHECKOUT, Block, blocks, links, pages

ALL_BLOCKS = [block for page in pages() for block in blocks(page)]


def of_language(*languages: str) -> list[Block]:
    return [block for block in ALL_BLOCKS if block.language in languages]


@pytest.mark.parametrize("page", pages())
def test_links_lead_to_files(page: str) -> None:
    folder = (CHECKOUT / page).parent
    inner = [link.partition("#")[0] for link in links(page) if not link.startswith(("http://", "https://", "mailto:"))]
    assert not [link for link in inner if link and not (folder / link).exists()]


def test_the_index_leads_to_every_page() -> None:
    linked = {(CHECKOUT / "docs" / link.partition("#")[0]).resolve() for link in links("docs/index.md")}
    kept = [page for page in pages() if page.startswith("docs/") and not page.startswith("docs/examples/")]
    assert not [page for page in kept if page != "docs/index.md" and CHECKOUT / page not in linked]


@pytest.mark.parametrize("block", of_language("python", "py"), ids=str)
def test_python_compiles(block: Block) -> None:
    ast.parse(block.text, filename=str(block))


@pytest.mark.parametrize(
    "block", [block for block in of_language("python", "py") if "run" in block.info.split()], ids=str
)
def test_python_runs(block: Block, tmp_path: Path) -> None:
    """Blocks whose fence says ``python run`` are whole programs."""
    done = subprocess.run(
        [sys.executable, "-c", block.text],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert done.returncode == 0, f"{block} failed:\n{done.stderr[-2000:]}"


@pytest.mark.parametrize("block", of_language("toml"), ids=str)
def test_toml_is_valid(block: Block) -> None:
    tomllib.loads(block.text)
