"""Wheels, and installs of every combination that matters, with pip and uv. Takes minutes, and needs the package index.

What is installed is run in a directory of its own, so that nothing of the checkout can be imported by accident.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from tests.docs.pages import blocks
from tests.packaging.members import CHECKOUT, MEMBERS, PLUGINS, import_name

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(600)]

CORE = Path("openheim-core")
NEWEST_PIP = re.search(r"^pip==(.+)$", (CHECKOUT / "constraints.txt").read_text(), re.MULTILINE)[1]  # type: ignore[index]  # it is pinned
#: The oldest that is supported comes with Python 3.11.
PIPS = ("23.2.1", NEWEST_PIP)


def run(*command: str | Path, cwd: Path, fails: bool = False, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value for name, value in os.environ.items() if name not in ("PIP_CONSTRAINT", "VIRTUAL_ENV", "PYTHONPATH")
    }
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=environment | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert fails == bool(done.returncode), f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy, since builds and uv leave files behind. Its name has a space, as a user's folder may."""
    copy = tmp_path_factory.mktemp("checkout") / "open heim"
    left_out = shutil.ignore_patterns(".git", ".venv*", ".*_cache", "__pycache__", ".hypothesis", "dist", "uv.lock")
    shutil.copytree(CHECKOUT, copy, ignore=left_out)
    return copy


@pytest.fixture(scope="session")
def wheelhouse(checkout: Path) -> Path:
    """All wheels, made as ``docs/how-to/build-a-minimal-image.md`` says."""
    build, *_installs = [block for block in blocks("docs/how-to/build-a-minimal-image.md") if block.language == "sh"]
    run("bash", "-e", "-c", build.text.replace("python3 ", f"{sys.executable} "), cwd=checkout)
    return checkout / "dist"


class Installation:
    """A virtual environment without pip; another pip works on it from outside."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "venv" / "bin" / "python"
        run(sys.executable, "-m", "venv", "--without-pip", folder / "venv", cwd=folder)

    def pip(self, *arguments: str | Path) -> str:
        return run(sys.executable, "-m", "pip", "--python", self.python, *arguments, cwd=self.folder).stdout

    def install_offline(self, wheelhouse: Path, *names: str) -> None:
        self.pip("install", "-q", "--no-index", "--find-links", wheelhouse, *names)
        self.pip("check")

    def openheim(self, *arguments: str, fails: bool = False) -> subprocess.CompletedProcess[str]:
        return run(self.python.with_name("openheim"), *arguments, cwd=self.folder, fails=fails)

    def distributions(self) -> set[str]:
        code = "import importlib.metadata as m; print(*{d.name for d in m.distributions() if 'openheim' in d.name})"
        return set(run(self.python, "-c", code, cwd=self.folder).stdout.split())


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return Installation(tmp_path)


# --- wheels ---


def test_wheels_build_for_all(wheelhouse: Path) -> None:
    names = {path.name.split("-")[0].replace("_", "-") for path in wheelhouse.glob("*.whl")}
    assert names >= {"openheim", *(member.name for member in MEMBERS)}


@pytest.mark.parametrize("member", MEMBERS, ids=str)
def test_a_wheel_holds_its_package_and_nothing_else(member: Path, wheelhouse: Path) -> None:
    (wheel,) = wheelhouse.glob(f"{member.name.replace('-', '_')}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    package = import_name(member)
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {package}
    assert f"{package}/py.typed" in names
    assert any(name.endswith("LICENSE") for name in names)


def test_the_umbrella_of_a_release_pins_its_parts(wheelhouse: Path) -> None:
    (wheel,) = wheelhouse.glob("openheim-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert all(".dist-info/" in name for name in archive.namelist())
        (name,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        metadata = Parser().parsestr(archive.read(name).decode())
    requirements = metadata.get_all("Requires-Dist") or []
    assert f"openheim-core=={metadata['Version']}" in requirements
    assert all(f"=={metadata['Version']}" in requirement for requirement in requirements)
    assert "all" in (metadata.get_all("Provides-Extra") or [])


def test_the_sdist_of_the_umbrella_leaves_the_others_out(checkout: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "build", "--sdist", "-o", tmp_path, cwd=checkout, OPENHEIM_RELEASE="1")
    (sdist,) = tmp_path.glob("openheim-*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names - {".gitignore"} == {"pyproject.toml", "README.md", "LICENSE", ".hatch/umbrella.py", "PKG-INFO"}
    # And a wheel can be made from it alone.
    run(sys.executable, "-m", "build", "--wheel", "-o", tmp_path, sdist.with_suffix("").with_suffix(""), cwd=tmp_path)
    (wheel,) = tmp_path.glob("openheim-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert b"file:" not in archive.read(next(name for name in archive.namelist() if name.endswith("/METADATA")))


# --- parts ---


def test_the_core_alone_says_what_is_missing(installation: Installation, wheelhouse: Path) -> None:
    installation.install_offline(wheelhouse, "openheim-core")
    assert installation.distributions() == {"openheim-core"}
    assert installation.openheim("--version").stdout.startswith("openheim ")
    assert "gates" in installation.openheim("plugins", "list").stdout
    failed = installation.openheim("run", "hi", fails=True)
    assert failed.returncode == 2
    assert "pip install openheim-provider-" in failed.stderr
    assert failed.stderr.count("error: ") == 1


@pytest.mark.parametrize("plugin", PLUGINS, ids=str)
def test_the_core_and_one_plugin(plugin: Path, installation: Installation, wheelhouse: Path) -> None:
    installation.install_offline(wheelhouse, plugin.name)
    assert installation.distributions() == {"openheim-core", plugin.name}
    run(installation.python, "-c", f"import {import_name(plugin)}.plugin", cwd=installation.folder)
    checked = installation.openheim("plugins", "check").stdout
    assert plugin.name in checked
    # Its contract suite, against what was installed: a copy of the tests, far from the checkout's sources.
    suites = contract_suites(plugin)
    assert suites, f"no test inherits a contract suite for {plugin.name}"
    installation.pip("install", "-q", "-c", CHECKOUT / "constraints.txt", *tools_for_tests())
    shutil.copytree(CHECKOUT / "tests", installation.folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CHECKOUT / "pyproject.toml", installation.folder)
    run(installation.python, "-m", "pytest", "-p", "no:cacheprovider", *suites, cwd=installation.folder)


def contract_suites(plugin: Path) -> list[str]:
    """Tests to run: the classes that say ``plugin = "…"`` and name this one, and those that inherit from them."""
    wanted = f"plugin = '{import_name(plugin)}.plugin'"
    suites: list[str] = []
    for file in sorted((CHECKOUT / "tests").rglob("test_*.py")):
        names: list[str] = []
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and (
                wanted in map(ast.unparse, node.body) or any(ast.unparse(base) in names for base in node.bases)
            ):
                names.append(node.name)
        suites += [f"{file.relative_to(CHECKOUT)}::{name}" for name in names]
    return suites


def tools_for_tests() -> list[str]:
    lines = (CHECKOUT / "tests/requirements.txt").read_text(encoding="utf-8").splitlines()
    return [line.partition("#")[0].strip() for line in lines if line and line[0] not in "#-"]


@pytest.mark.parametrize("extra", ["all", "openai"])
def test_the_wheelhouse_serves_extras_offline(extra: str, installation: Installation, wheelhouse: Path) -> None:
    installation.install_offline(wheelhouse, f"openheim[{extra}]")
    wanted = PLUGINS if extra == "all" else [plugin for plugin in PLUGINS if plugin.name.endswith(f"-{extra}")]
    assert installation.distributions() == {"openheim", "openheim-core", *(plugin.name for plugin in wanted)}
    installation.openheim("plugins", "check")


def test_a_minimal_install_is_small(installation: Installation, wheelhouse: Path) -> None:
    installation.install_offline(wheelhouse, "openheim-core", "openheim-provider-openai")
    packages = installation.folder / "venv" / "lib"
    size = sum(path.stat().st_size for path in packages.rglob("*") if path.is_file() and not path.is_symlink())
    assert size / 1e6 <= 40


# --- a checkout ---


@pytest.mark.parametrize("options", [(), ("-e",)], ids=["copy", "editable"])
@pytest.mark.parametrize("pip", PIPS)
def test_pip_installs_a_checkout(pip: str, options: tuple[str, ...], checkout: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", f"pip=={pip}", cwd=tmp_path)
    run(python, "-m", "pip", "install", "-q", "-c", "constraints.txt", *options, ".[all]", cwd=checkout)
    run(python, "-m", "pip", "check", cwd=tmp_path)
    does_its_main_job(python, checkout)


def test_uv_installs_a_checkout(checkout: Path, tmp_path: Path) -> None:
    uv = Path(sys.executable).with_name("uv")
    run(uv, "venv", "-q", tmp_path / "venv", "--python", sys.executable, cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    run(uv, "pip", "install", "-q", "--python", python, "-c", "constraints.txt", ".[all]", cwd=checkout)
    does_its_main_job(python, checkout)


def test_uv_syncs_the_workspace(checkout: Path, tmp_path: Path) -> None:
    uv = Path(sys.executable).with_name("uv")
    sync = (uv, "sync", "-q", "--all-packages", "--all-extras", "--python", sys.executable)
    run(*sync, cwd=checkout, UV_PROJECT_ENVIRONMENT=str(tmp_path / "venv"))
    assert str(checkout) not in (checkout / "uv.lock").read_text()
    does_its_main_job(tmp_path / "venv" / "bin" / "python", checkout)


def does_its_main_job(python: Path, checkout: Path) -> None:
    openheim = python.with_name("openheim")
    done = run(openheim, "run", "--provider", "demo", "What is in this directory?", cwd=checkout)
    assert "pyproject.toml" in done.stdout
