"""``openheim plugins list`` and ``show``: everything that is installed, and nothing of it imported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.plugins.distributions import make_distribution, make_tool_distribution, run_openheim, run_python, tool_plugin

KEYS = ["kind", "name", "distribution", "version", "status", "note", "value", "editable", "requires", "summary"]


def listed(*arguments: str, folders: list[Path], **variables: str) -> dict[str, dict[str, Any]]:
    done = run_openheim("plugins", "list", "--json", *arguments, folders=folders, **variables)
    assert done.returncode == 0, done.stderr
    return {f"{row['kind']}.{row['name']} {row['distribution']}": row for row in json.loads(done.stdout)}


def test_rows_have_the_documented_keys(tmp_path: Path) -> None:
    site = tmp_path / "site"
    make_tool_distribution(site, "oh-tools", "x", requires=["openheim-core>=0.1"])
    rows = listed(folders=[site])
    assert all(list(row) == KEYS for row in rows.values())
    assert rows["tools.x oh-tools"] == {
        "kind": "tools",
        "name": "x",
        "distribution": "oh-tools",
        "version": "1.0",
        "status": "available",
        "note": "",
        "value": "oh_tools_plugin:plugin",
        "editable": None,
        "requires": ["openheim-core>=0.1"],
        "summary": "A throw-away distribution",
    }
    assert rows["gates.allow openheim-core"]["status"] == "available"


def test_the_table_says_the_same(tmp_path: Path) -> None:
    site = tmp_path / "site"
    make_tool_distribution(site, "oh-later", "x", requires=["openheim-core>=9"])
    done = run_openheim("plugins", "list", folders=[site])
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["KIND", "NAME", "DISTRIBUTION", "VERSION", "STATUS", "NOTE"]
    (line,) = [line for line in lines if "oh-later" in line]
    assert line.split()[:5] == ["tools", "x", "oh-later", "1.0", "incompatible"]
    assert "openheim-core>=9" in line
    assert done.stderr == ""


def test_thirty_plugins_are_listed_and_none_is_imported(tmp_path: Path) -> None:
    site, marks = tmp_path / "site", tmp_path / "marks"
    marks.mkdir()
    marking = "import pathlib\npathlib.Path({!r}).touch()\n"
    for number in range(30):
        source = marking.format(str(marks / str(number))) + tool_plugin()
        make_tool_distribution(site, f"oh-{number}", f"t{number}", source, requires=["openheim-core>=0.1,<1"])
    # importtime names every module that is imported, and does not depend on what we believe is heavy.
    done = run_python("-X", "importtime", "-m", "openheim", "plugins", "list", folders=[site])
    assert done.returncode == 0
    assert len([line for line in done.stdout.splitlines() if " oh-" in line]) == 30
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "openheim" in imported
    assert not {"pydantic", "pluggy", "stevedore", "httpx", "asyncio", "anyio", "tomlkit"} & imported
    assert not [module for module in imported if module.startswith("oh_")]
    assert list(marks.iterdir()) == []
    # The marks would have been made: the same plugins do leave them when they are used.
    run_openheim("tools", "list", folders=[site])
    assert len(list(marks.iterdir())) == 30


def test_states(tmp_path: Path, own_environment: Path) -> None:
    site = tmp_path / "site"
    make_tool_distribution(site, "oh-off", "off")
    make_tool_distribution(site, "oh-one", "same")
    make_tool_distribution(site, "oh-two", "same")
    make_tool_distribution(site, "oh-later", "later", requires=["openheim-core<0.1"])
    make_tool_distribution(site, "oh-fails", "fails", "raise RuntimeError")
    own_environment.mkdir()
    config = own_environment / "config.toml"
    config.write_text('[plugins]\ndisable = ["tools.off"]\n')
    rows = listed(folders=[site])
    assert {row["distribution"]: row["status"] for name, row in rows.items() if " oh-" in name} == {
        "oh-off": "disabled",
        "oh-one": "conflict",
        "oh-two": "conflict",
        "oh-later": "incompatible",
        "oh-fails": "available",
    }
    assert rows["tools.same oh-one"]["note"] == "also offered by oh-two 1.0"

    config.write_text('[plugins.prefer]\ntools.same = "oh-two"\n')
    rows = listed(folders=[site])
    assert rows["tools.same oh-one"]["status"] == "disabled"
    assert rows["tools.same oh-two"]["status"] == "available"

    rows = listed("--safe-mode", folders=[site])
    assert {row["status"] for name, row in rows.items() if " oh-" in name} == {"disabled"}
    rows = listed(folders=[site], OPENHEIM_PLUGINS="oh-off", OPENHEIM_PLUGINS_DISABLE="")
    assert {name for name, row in rows.items() if row["status"] == "available"} == {"tools.off oh-off"}


def test_settings_that_cannot_be_read_do_not_stop_the_list(tmp_path: Path, own_environment: Path) -> None:
    site = tmp_path / "site"
    make_tool_distribution(site, "oh-tools", "x")
    own_environment.mkdir()
    for text, named in (
        ("[plugins\n", "config.toml, line 1"),
        ("plugins = 3\n", "[plugins]"),
        ("[plugins]\ndisable = 'tools.x'\n", "disable"),
        ("[plugins]\ndisabel = []\n", "did you mean disable?"),
    ):
        (own_environment / "config.toml").write_text(text)
        done = run_openheim("plugins", "list", folders=[site])
        assert done.returncode == 0
        assert "oh-tools" in done.stdout
        (line,) = done.stderr.splitlines()
        assert line.startswith("warning: ")
        assert named in line


def test_another_config_file_may_be_named(tmp_path: Path) -> None:
    site, config = tmp_path / "site", tmp_path / "other.toml"
    make_tool_distribution(site, "oh-tools", "x")
    config.write_text('[plugins]\ndisable = ["oh-tools"]\n')
    assert listed("--config", str(config), folders=[site])["tools.x oh-tools"]["status"] == "disabled"


def test_slips_and_broken_metadata_are_warned_of(tmp_path: Path) -> None:
    site = tmp_path / "site"
    make_distribution(site, "oh-slip", entry_points={"openheim.tool": ["x = m"]})
    info = make_distribution(site, "oh-broken", entry_points={"openheim.tools": ["x = m"]})
    (info / "METADATA").unlink()
    done = run_openheim("plugins", "list", folders=[site], OPENHEIM_PLUGINS_DISABLE="tools.nowhere")
    assert done.returncode == 0
    assert len(done.stderr.splitlines()) == 3
    for word in ("openheim.tool", str(site), "tools.nowhere"):
        assert word in done.stderr


def test_show(tmp_path: Path) -> None:
    site = tmp_path / "site"
    make_distribution(
        site, "oh-two", entry_points={"openheim.tools": ["x = m:plugin"], "openheim.gates": ["y = n:plugin"]}
    )
    done = run_openheim("plugins", "show", "x", folders=[site])
    assert "value:        m:plugin" in done.stdout.splitlines()
    assert f"location:     {site}" in done.stdout.splitlines()
    done = run_openheim("plugins", "show", "oh-two", "--json", folders=[site])
    assert [(row["kind"], row["name"], list(row)) for row in json.loads(done.stdout)] == [
        ("tools", "x", KEYS),
        ("gates", "y", KEYS),
    ]
    done = run_openheim("plugins", "show", "oh_tow", folders=[site])
    assert done.returncode == 2
    assert done.stderr == "error: no plugin named 'oh_tow' is installed (did you mean oh-two?)\n"


def test_an_empty_environment_is_listed_too(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    done = run_python(
        "-c",
        "from openheim.plugins import catalogue, listing, policy\n"
        "print(list(listing.rows(catalogue.scan([]), policy.PluginPolicy())))",
        folders=[tmp_path / "site"],
    )
    assert done.stdout == "[]\n"
