"""The plugins under ``docs/examples``, installed by pip as a third party's are."""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

from tests.examples.installing import EXAMPLES, environment, install, run

SHOUT, PARROT = "openheim-tools-shout", "openheim-provider-parrot"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all examples installed."""
    work = tmp_path_factory.mktemp("examples")
    for example in (SHOUT, PARROT):
        install(example, work / "site", work)
    return work / "site"


@pytest.mark.parametrize(
    ("distribution", "group", "name"),
    [
        ("acme-openheim-shout", "openheim.tools", "shout"),
        ("acme-openheim-parrot", "openheim.providers", "parrot"),
    ],
)
def test_the_entry_point_is_found(site: Path, distribution: str, group: str, name: str) -> None:
    found = next(each for each in distributions(path=[str(site)]) if each.metadata["Name"] == distribution)
    assert [(point.group, point.name) for point in found.entry_points] == [(group, name)]
    assert found.requires == ["openheim-core<0.2,>=0.1"]
    package = next(iter(found.entry_points)).module.partition(".")[0]
    assert (site / package / "py.typed").is_file()


@pytest.mark.parametrize("example", [SHOUT, PARROT])
def test_passes_its_contract(example: str, site: Path, tmp_path: Path) -> None:
    done = run(
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", "--rootdir", str(tmp_path)),
        str(EXAMPLES / example / "tests"),
        cwd=tmp_path,
        environment=environment(site, tmp_path) | {"PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert re.search(r"^\d\d passed", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.parametrize("name", ["shout", "parrot"])
def test_plugins_check_loads_it(name: str, site: Path, tmp_path: Path) -> None:
    done = run("openheim", "plugins", "check", name, "--json", cwd=tmp_path, environment=environment(site, tmp_path))
    (row,) = json.loads(done.stdout)
    assert (row["name"], row["ok"], row["error"], row["warnings"]) == (name, True, None, [])


def test_the_tool_can_be_called(site: Path, tmp_path: Path) -> None:
    env = environment(site, tmp_path)
    done = run("openheim", "tools", "call", "shout", '{"text": "hello"}', cwd=tmp_path, environment=env)
    assert done.stdout == "HELLO!\n"
    done = run("openheim", "tools", "call", "shout", '{"text": " "}', cwd=tmp_path, environment=env, status=1)
    assert "nothing to shout" in done.stderr


def test_the_provider_answers_with_its_settings(site: Path, tmp_path: Path) -> None:
    config = tmp_path / "parrot.toml"
    config.write_text('[providers.polly]\nkind = "parrot"\ntimes = 2\n', encoding="utf-8")
    command = ("openheim", "run", "--config", str(config), "--provider", "polly", "hello there")
    assert run(*command, cwd=tmp_path, environment=environment(site, tmp_path)).stdout == "hello there hello there\n"
    config.write_text('[providers.polly]\nkind = "parrot"\ntime = 2\n', encoding="utf-8")
    refused = run(*command, cwd=tmp_path, environment=environment(site, tmp_path), status=2)
    assert "times" in refused.stderr


@pytest.mark.parametrize("example", [SHOUT, PARROT])
def test_uses_public_names_only(example: str) -> None:
    for source in (EXAMPLES / example).rglob("*.py"):
        assert not re.search(r"openheim\._|from openheim import _|openheim\.\w+\._", source.read_text("utf-8")), source
