"""Every command that the documentation shows is run as it stands there, or is listed here with the reason why not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import CHECKOUT, Block, blocks, pages

SHELLS = ("sh", "bash", "shell", "console")

#: Page (``*`` for any) and how a block starts -> why this suite does not run it.
NOT_RUN = {
    ("*", "pip install openheim"): "asks the package index for released packages",
    ("README.md", "python3 -m venv .venv &&"): "installs from the package index; .ci/quick-start runs it",
    ("README.md", "python3 -m venv .venv-test &&"): "is what runs this test; .ci/quick-start runs it",
    ("README.md", "export OPENAI_API_KEY="): "needs a key and a network",
    ("docs/tutorial/your-first-tool-plugin.md", ""): "tests/examples runs it, where pip may install",
    ("docs/tutorial/your-first-provider-plugin.md", ""): "tests/examples runs it, where pip may install",
    ("docs/examples/openheim-provider-parrot/README.md", "pip install"): "tests/examples installs it, apart from here",
    ("docs/examples/openheim-tools-shout/README.md", "pip install"): "tests/examples installs it, apart from here",
    ("docs/how-to/build-a-minimal-image.md", "OPENHEIM_RELEASE=1"): "takes minutes; tests/packaging runs it",
    (
        "docs/how-to/build-a-minimal-image.md",
        "pip install --no-index",
    ): "needs those wheels; tests/packaging installs them",
    ("docs/how-to/run-a-local-model.md", "openheim run --provider local"): "needs a model server; tests/real has one",
    ("docs/how-to/run-a-local-model.md", "python3 -m venv llama"): "takes 280 MB; tests/real does the same",
}


def reason_not_to_run(block: Block) -> str | None:
    for (page, start), reason in NOT_RUN.items():
        if page in ("*", block.page) and block.text.startswith(start):
            return reason
    return None


def shell_blocks(page: str) -> list[Block]:
    return [block for block in blocks(page) if block.language in SHELLS]


def commands_of(page: str) -> list[Block]:
    return [block for block in shell_blocks(page) if reason_not_to_run(block) is None]


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Path]:
    """A copy of the checkout, where commands may leave what they like."""
    copy = tmp_path / "openheim"
    shutil.copytree(
        CHECKOUT, copy, ignore=shutil.ignore_patterns(".git", ".venv*", ".*_cache", "__pycache__", ".hypothesis")
    )
    yield copy
    shutil.rmtree(copy)


@pytest.mark.parametrize("page", [page for page in pages() if commands_of(page)])
def test_commands_work_as_shown(page: str, checkout: Path, tmp_path: Path) -> None:
    # As a reader has it: a home folder of their own, openheim on PATH, no key. And without a network.
    environment = {name: value for name, value in os.environ.items() if name not in ("OPENHEIM_HOME", "PYTHONPATH")}
    environment |= {
        "HOME": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PIP_NO_INDEX": "1",
        "http_proxy": "http://127.0.0.1:9",
        "https_proxy": "http://127.0.0.1:9",
        "no_proxy": "127.0.0.1,localhost",
    }
    # The blocks of one page build on each other.
    for block in commands_of(page):
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", block.text],
            cwd=checkout,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=50,
        )
        assert done.returncode == 0, (
            f"{block} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )


def test_the_table_names_blocks_that_exist() -> None:
    shown = [block for page in pages() for block in shell_blocks(page)]
    used = {key for key in NOT_RUN for block in shown if key[0] in ("*", block.page) and block.text.startswith(key[1])}
    assert set(NOT_RUN) == used


def test_the_quick_start_is_two_commands_of_one_line() -> None:
    part = (CHECKOUT / "README.md").read_text(encoding="utf-8").split("\n## Quick start\n")[1]
    first, second = [block for block in shell_blocks("README.md") if block.text in part][:2]
    assert first.text.count("\n") == second.text.count("\n") == 1
    assert "openheim run" in first.text
    assert "pytest" in second.text
