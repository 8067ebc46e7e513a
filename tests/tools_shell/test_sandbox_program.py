"""Commands in a sandbox cannot change what openheim is run from: with that, the next command would be outside of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from openheim import ToolsContext
from openheim_tools_shell.examination import examine
from openheim_tools_shell.sandbox import bwrap as bubblewrap
from openheim_tools_shell.sandbox import landlock, program
from openheim_tools_shell.settings import Settings
from tests.tools_shell.calls import Shell, tree

pytestmark = pytest.mark.anyio

#: ``mv`` would copy what it cannot rename.
MOVE = "mv() { python3 -c 'import os, sys; os.rename(*sys.argv[1:])' $*; };"


@pytest.fixture
def installed(work: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on Python's path inside of the work directory, as of an editable install: a package of openheim's own
    that is loaded, and a plugin in a package and one in a module, which are not."""
    folder = work / "a" / "src"
    for path in ("openheim_made_up/__init__.py", "plugin_one/__init__.py", "plugin_two.py", "other/__init__.py"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("")
    metadata = folder / "made_up-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[openheim.tools]\none = plugin_one.tools:PLUGIN\ntwo = plugin_two\n")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(folder)
    program._plugins.cache_clear()
    __import__("openheim_made_up")
    yield folder
    del sys.modules["openheim_made_up"]
    program._plugins.cache_clear()


async def test_a_python_in_the_work_dir_cannot_be_changed(
    bwrap: None, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = work / "a" / "b" / ".venv"
    (prefix / "bin").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(prefix))
    shell = Shell(work, sandbox="bwrap")
    await shell("! echo bad > a/b/.venv/bin/python; ! mv a/b/.venv away; ! mv a/b away; ! mv a away; ! rm -r a/b/.venv")
    await shell("echo new > a/b/new")
    assert tree(work) == {"a/b/new": "new\n"}
    assert (prefix / "bin").is_dir()
    await Shell(work, sandbox="bwrap", writable=(str(prefix),))("echo new > a/b/.venv/bin/tool")
    assert (prefix / "bin" / "tool").read_text() == "new\n"


async def test_openheims_packages_and_all_plugins_in_the_work_dir_cannot_be_changed(
    bwrap: None, work: Path, installed: Path
) -> None:
    before = tree(work)
    shell = Shell(work, sandbox="bwrap")
    for path in ("openheim_made_up", "plugin_one"):
        await shell(f"{MOVE} cd a/src; ! echo bad > {path}/__init__.py; ! echo bad > {path}/new.py; ! mv {path} away")
    await shell(f"{MOVE} cd a/src; ! echo bad > plugin_two.py; ! rm plugin_two.py; ! mv plugin_two.py away")
    await shell(f"{MOVE} ! mv a/src away; ! mv a away")
    assert tree(work) == before
    await shell(f"{MOVE} echo new > a/src/other/__init__.py; echo new > a/new")
    await Shell(work, sandbox="bwrap", writable=("a/src/plugin_one",))("echo new > a/src/plugin_one/__init__.py")
    changed = {"a/src/other/__init__.py", "a/new", "a/src/plugin_one/__init__.py"}
    assert tree(work) == before | dict.fromkeys(changed, "new\n")


async def test_what_is_around_a_package_in_a_protected_folder_is_protected(
    bwrap: None, work: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The packages of openheim in a virtual environment, which has others beside them."""
    before = tree(work)
    monkeypatch.setattr(sys, "prefix", str(work / "a"))
    await Shell(work, sandbox="bwrap")(
        f"{MOVE} ! echo bad > a/src/other/__init__.py; ! echo bad > a/src/new; ! mv a away"
    )
    assert tree(work) == before
    # Where a folder within may be written, the packages may not.
    shell = Shell(work, sandbox="bwrap", writable=("a/src",))
    await shell(f"{MOVE} echo new > a/src/new; ! echo bad > a/src/plugin_one/__init__.py; ! mv a/src/plugin_one away")
    assert tree(work) == before | {"a/src/new": "new\n"}


async def test_what_is_hidden_around_a_package_stays_hidden(bwrap: None, work: Path, installed: Path) -> None:
    (work / "a" / "src" / "secret").write_text("words")
    shell = Shell(work, sandbox="bwrap", hidden=("a",))
    said = await shell(
        f"{MOVE} cat a/src/secret; ! mv a away; ! echo bad > a/src/new; cat a/src/plugin_one/__init__.py"
    )
    assert "words" not in said
    assert (work / "a" / "src" / "secret").read_text() == "words"


def test_doctor_names_what_landlock_leaves_to_be_changed(
    work: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bubblewrap, "why_not", lambda program, network: "it is not installed")
    monkeypatch.setattr(landlock, "why_not", lambda: "")
    found = {
        finding.subject: finding
        for finding in examine(Settings(), ToolsContext(work, Path("/no/data"), allow_shell=True))
    }
    names = ", ".join(f"{installed}/{name}" for name in ("openheim_made_up", "plugin_one", "plugin_two.py"))
    assert found["openheim itself"].detail == (
        f"commands can change {names}, which openheim is run from, and so leave the sandbox"
    )
