"""What holds for every toolset, and what clients rely on in this one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, ClassVar

import pytest

from openheim import ToolError
from openheim.testing import FakeTurn, ToolsetContract, import_report
from tests.tools_fs.calls import TOOLS, call, call_for_result, target

pytestmark = pytest.mark.anyio

CONTRACT = json.loads((Path(__file__).parent / "contract_schemas.json").read_text(encoding="utf-8"))
ADDED = {"list_dir": ["offset"], "read_file": ["column"], "search": ["glob", "context", "names"]}


class TestFileTools(ToolsetContract):
    plugin = "openheim_tools_fs.plugin"
    sample_calls: ClassVar[dict[str, dict[str, Any]]] = {
        "read_file": {"path": "README.md"},
        "write_file": {"path": "new.md", "content": "text"},
        "edit_file": {"path": "README.md", "old_string": "A folder", "new_string": "The folder"},
        "list_dir": {},
        "search": {"pattern": "folder"},
    }


@pytest.mark.parametrize("name", CONTRACT)
def test_schemas_are_those_of_the_contract(name: str) -> None:
    """Byte for byte, but for optional arguments that were added behind."""
    tool = TOOLS[name]
    contract = CONTRACT[name]
    ours: dict[str, Any] = json.loads(json.dumps(tool.parameters))
    added = {key: ours["properties"].pop(key) for key in ADDED.get(name, [])}
    assert json.dumps(ours) == json.dumps(contract["parameters"])
    assert tool.description == contract["description"]
    assert not set(added) & set(ours.get("required", ()))
    assert list(tool.parameters["properties"])[len(ours["properties"]) :] == list(added)


def test_there_are_no_other_tools() -> None:
    assert sorted(TOOLS) == sorted(CONTRACT)


def test_traits() -> None:
    traits = {name: (tool.kind, tool.read_only) for name, tool in TOOLS.items()}  # type: ignore[attr-defined] # FunctionTool
    assert traits == {
        "read_file": ("read", True),
        "write_file": ("edit", False),
        "edit_file": ("edit", False),
        "list_dir": ("read", True),
        "search": ("search", True),
    }


async def test_targets_are_canonical(work: Path) -> None:
    (work / "sub").mkdir()
    (work / "sub" / "x").write_text("1")
    (work / "link").symlink_to("sub")
    turn = FakeTurn(work, cwd=work / "sub")
    for path in ("x", "./x", "../link/x", str(work / "sub" / "x"), "../sub/../sub/x"):
        for name in ("read_file", "write_file", "edit_file"):
            assert target(turn, name, path=path) == "sub/x"
    for name in ("list_dir", "search"):
        assert target(turn, name) == "sub"
        assert target(turn, name, path="") == "sub"
        assert target(turn, name, path="../link") == "sub"
    assert target(turn, "write_file", path="../new/y") == "new/y"
    assert target(turn, "write_file", path="../../elsewhere") is None


@pytest.mark.parametrize("name", ["read_file", "write_file", "edit_file"])
@pytest.mark.parametrize("path", ["", "  ", "\n"])
async def test_a_blank_path_is_refused_where_one_is_needed(turn: FakeTurn, name: str, path: str) -> None:
    rest = {"write_file": {"content": "x"}, "edit_file": {"old_string": "a", "new_string": "b"}}.get(name, {})
    with pytest.raises(ToolError, match="path is empty"):
        await call(turn, name, path=path, **rest)


async def test_paths_start_from_the_directory_of_the_turn(work: Path) -> None:
    (work / "sub").mkdir()
    turn = FakeTurn(work, cwd=work / "sub")
    await call(turn, "write_file", path="x.txt", content="one\n")
    await call(turn, "edit_file", path="x.txt", old_string="one", new_string="two")
    assert (work / "sub" / "x.txt").read_text() == "two\n"
    assert await call(turn, "read_file", path="x.txt") == "two\n"
    assert await call(turn, "list_dir") == "x.txt"
    assert await call(turn, "search", pattern="two") == "x.txt:1: two"
    assert await call(turn, "list_dir", path="..") == "sub/"
    (work / "top.txt").write_text("two\n")
    assert await call(turn, "search", pattern="two", path="..") == "x.txt:1: two\n../top.txt:1: two"
    with pytest.raises(ToolError, match="outside"):
        await call(turn, "read_file", path="../../x")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("list_dir", {"path": "\udcff"}),
        ("read_file", {"path": "\udcff/a"}),
        ("write_file", {"path": "\udcff/new", "content": "x"}),
        ("edit_file", {"path": "\udcff/a", "old_string": "x", "new_string": "y"}),
        ("search", {"path": "\udcff", "pattern": "x"}),
        ("search", {"path": "\udcff/a", "pattern": "x"}),
        ("search", {"path": "\udcff/a", "pattern": "a", "names": True}),
        ("read_file", {"path": "\udcff/nowhere"}),
        ("read_file", {"path": "\ud800"}),
    ],
)
async def test_results_are_text_whatever_names_are_made_of(
    work: Path, turn: FakeTurn, name: str, arguments: dict[str, Any]
) -> None:
    folder = work / os.fsdecode(b"\xff")
    folder.mkdir()
    (folder / "a").write_text("x")
    try:
        result = await call_for_result(turn, name, **arguments)
    except ToolError as err:
        assert str(err).encode()
    else:
        assert json.dumps([[block.text for block in result.content], result.display], ensure_ascii=False).encode()


def test_the_plugin_module_imports_nothing_heavy() -> None:
    report = import_report("openheim_tools_fs.plugin")
    assert not {"pydantic", "anyio", "ctypes", "re2"} & set(report.modules), sorted(report.modules)
