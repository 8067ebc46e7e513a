"""What the distributions say of themselves, read from the checkout."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import PACKAGES
from tests.packaging.members import CHECKOUT, MEMBERS, PLUGINS, import_name, toml

ROOT = toml("pyproject.toml")


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("member", MEMBERS, ids=str)
def test_a_member_is_complete(member: Path) -> None:
    source = CHECKOUT / member / "src" / import_name(member)
    wanted = [CHECKOUT / member / "README.md", source / "__init__.py", source / "py.typed"]
    if member in PLUGINS:
        wanted.append(source / "plugin.py")
    assert [path for path in wanted if not path.is_file()] == []
    project = toml(member / "pyproject.toml")["project"]
    assert project["name"] == member.name
    assert project["requires-python"] == ROOT["project"]["requires-python"]
    assert project["license"] == "MIT"
    assert (CHECKOUT / member / "LICENSE").read_text() == (CHECKOUT / "LICENSE").read_text()


@pytest.mark.parametrize("member", MEMBERS, ids=str)
def test_all_members_have_the_version_of_the_core(member: Path) -> None:
    def version(of: Path) -> str:
        data = toml(of / "pyproject.toml")
        if "version" in data["project"]:
            return str(data["project"]["version"])
        text = (CHECKOUT / of / data["tool"]["hatch"]["version"]["path"]).read_text(encoding="utf-8")
        found = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
        assert found is not None
        return found[1]

    assert version(member) == version(Path("openheim-core"))


@pytest.mark.parametrize("plugin", PLUGINS, ids=str)
def test_a_plugin_asks_for_this_major_version_of_the_core(plugin: Path) -> None:
    from packaging.requirements import Requirement
    from packaging.version import Version

    from openheim import __version__

    wanted = [Requirement(text) for text in toml(plugin / "pyproject.toml")["project"]["dependencies"]]
    (core,) = [requirement for requirement in wanted if requirement.name == "openheim-core"]
    version = Version(__version__)
    assert version in core.specifier
    assert Version(f"{version.major + 1}.0") not in core.specifier


def test_every_member_is_listed_wherever_members_are_listed() -> None:
    names = {member.name for member in MEMBERS}
    packages = {import_name(member) for member in MEMBERS}
    extras = ROOT["tool"]["openheim"]["extras"]

    def bare(entries: list[str]) -> set[str]:
        return {entry.partition("[")[0] for entry in entries}

    assert bare(extras["all"]) == names - {"openheim-core"}
    assert {name for entries in extras.values() for name in bare(entries)} <= names
    assert set(ROOT["tool"]["uv"]["sources"]) == names
    assert set(ROOT["tool"]["importlinter"]["root_packages"]) == packages
    core_alone, independent, *others = ROOT["tool"]["importlinter"]["contracts"]
    assert set(core_alone["forbidden_modules"]) == set(independent["modules"]) == packages - {"openheim"}
    assert [contract["name"] for contract in others if set(contract["source_modules"]) != packages] == []
    assert set(PACKAGES) == packages
    lines = (CHECKOUT / "tests/requirements.txt").read_text().splitlines()
    assert {Path(line.split()[1].partition("[")[0]) for line in lines if line.startswith("-e ")} == set(MEMBERS)


def test_members_are_known_to_the_core() -> None:
    from openheim.plugins.first_party import FIRST_PARTY_DISTRIBUTIONS, distribution_of

    for plugin in PLUGINS:
        assert plugin.name in FIRST_PARTY_DISTRIBUTIONS
        for group, entries in toml(plugin / "pyproject.toml")["project"]["entry-points"].items():
            for name in entries:
                assert distribution_of(group.removeprefix("openheim."), name) == plugin.name


def test_constraints_pin_all_that_is_asked_for() -> None:
    text = (CHECKOUT / "constraints.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    pinned = {normalized(line.partition("==")[0]) for line in lines}
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.]+( ; .+)?", line)] == []
    assert "://" not in text
    asked: list[str] = []
    for member in MEMBERS:
        data = toml(member / "pyproject.toml")
        asked += data["project"].get("dependencies", []) + data["build-system"]["requires"]
        asked += [entry for entries in data["project"].get("optional-dependencies", {}).values() for entry in entries]
    for file in ("tests/requirements.txt", ".ci/requirements.txt", "tests/real/requirements.txt"):
        wanted = (CHECKOUT / file).read_text(encoding="utf-8").splitlines()
        asked += [line for line in wanted if line and line[0] not in "#-"]
    names = {normalized(re.split(r"[^\w.-]", entry)[0]) for entry in asked}
    assert {name for name in names if not name.startswith("openheim")} <= pinned
