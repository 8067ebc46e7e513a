"""What is public: the names of ``openheim`` and of ``openheim.testing``, and the ``__all__`` of every public module."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import openheim
from openheim import errors, events

ROOT = Path(openheim.__file__).parent
CHECKOUT = Path(__file__).resolve().parent.parent
LAZY = ("openheim", "openheim.testing")

#: Modules that a first-party plugin imports more from than ``openheim`` exports.
BESIDE = {
    "openheim.files.Entry",
    "openheim.files.Folder",
    "openheim.files.Listing",
    "openheim.http.HttpExchange",
    "openheim.jsontext.MAX_DEPTH",
    "openheim.jsontext.dump_text",
    "openheim.jsontext.is_deep",
    "openheim.jsontext.is_object",
    "openheim.jsontext.parse",
    "openheim.jsontext.wire_bytes",
    "openheim.messages.image_type",
    "openheim.masking.mask_secrets",
    "openheim.plugins.catalogue.scan",
    "openheim.service.HttpService",
    "openheim.service_settings.ServiceSettings",
}


def source_of(module: str) -> Path:
    path = ROOT.parent.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def tree_of(module: str) -> ast.Module:
    return ast.parse(source_of(module).read_text(encoding="utf-8"))


def public_modules() -> list[str]:
    found = []
    for path in ROOT.rglob("*.py"):
        parts = list(path.relative_to(ROOT.parent).with_suffix("").parts)
        if parts[-1] == "__init__":
            del parts[-1]
        if not any(part.startswith("_") for part in parts):
            found.append(".".join(parts))
    return sorted(found)


MODULES = public_modules()


def literal(module: str, name: str) -> Any:
    """The value of a module-level assignment, which has to be a literal: type checkers read it too."""
    for node in tree_of(module).body:
        if isinstance(node, ast.Assign) and [getattr(target, "id", "") for target in node.targets] == [name]:
            return ast.literal_eval(node.value)
    raise AssertionError(f"{module} has no {name}")


def type_checking_imports(module: str) -> dict[str, tuple[str, str]]:
    """Name to module and name there, of what is imported for type checkers only."""
    found = {}
    for node in tree_of(module).body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for statement in node.body:
                assert isinstance(statement, ast.ImportFrom) and statement.module is not None
                for alias in statement.names:
                    found[alias.asname or alias.name] = (statement.module, alias.name)
    return found


# --- the lazy names ---


def test_the_names_are_sorted() -> None:
    names = literal("openheim", "__all__")
    assert isinstance(names, tuple)
    assert list(names) == sorted(set(names))


@pytest.mark.parametrize("module", LAZY)
def test_every_name_has_a_home_and_type_checkers_see_the_same(module: str) -> None:
    names = set(literal(module, "__all__")) - {"__version__"}
    homes = literal(module, "_HOME")
    assert list(homes) == [name for name in literal(module, "__all__") if name != "__version__"]
    imported = type_checking_imports(module)
    assert {name: home for name, (home, _there) in imported.items()} == {
        name: f"{module}.{homes[name]}" for name in names
    }
    package = import_module(module)
    for name, (home, there) in imported.items():
        assert getattr(package, name) is getattr(import_module(home), there), name
        # Aliases of types have no name of their own; the module that defines one says that it is public.
        assert there in import_module(home).__all__, f"{home} does not count {there} as public"


@pytest.mark.parametrize("module", LAZY)
def test_other_names_do_not_exist(module: str) -> None:
    package = import_module(module)
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'Clinet'"):
        package.Clinet  # noqa: B018  # the mistake under test
    assert dir(package) == sorted(package.__all__)


def test_every_error_and_every_event_is_exported() -> None:
    classes = {name for name in (*errors.__all__, *events.__all__) if name[0].isupper()}
    assert classes <= set(openheim.__all__)


def test_importing_openheim_imports_nothing_else_of_it() -> None:
    script = (
        "import sys\n"
        "import openheim\n"
        "dir(openheim)\n"
        "print(sorted(name for name in sys.modules if name.startswith('openheim')))\n"
        "openheim.TextBlock\n"
        "print(sorted(name for name in sys.modules if name.startswith('openheim')))\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, timeout=50, check=True)
    at_first, then = done.stdout.splitlines()
    assert ast.literal_eval(at_first) == ["openheim"]
    assert ast.literal_eval(then) == ["openheim", "openheim.messages"]


# --- the modules ---


def public_definitions(module: str) -> Iterator[str]:
    """Functions and classes of a module, without the commands of the command line, whose names nobody imports."""
    for node in tree_of(module).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            decorators = map(ast.unparse, node.decorator_list)
            if not any(decorator.startswith(("app.command(", "app.callback(")) for decorator in decorators):
                yield node.name


def test_there_are_modules() -> None:
    assert {"openheim", "openheim.events", "openheim.testing", "openheim.plugins.hookspecs"} <= set(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_names_what_is_public_in_it(module: str) -> None:
    names = literal(module, "__all__")
    assert isinstance(names, tuple)
    assert len(set(names)) == len(names)
    assert set(public_definitions(module)) - {"__getattr__", "__dir__"} <= set(names)
    loaded = import_module(module)
    assert [name for name in names if not hasattr(loaded, name)] == []


# --- what plugins need ---


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("openheim."):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_what_first_party_plugins_use_is_exported() -> None:
    homes = {f"{home}.{there}" for home, there in type_checking_imports("openheim").values()}
    used = {
        name
        for folder in ("openheim-providers", "openheim-tools", "openheim-transports", "openheim-memory")
        for path in CHECKOUT.glob(f"{folder}/**/src/**/*.py")
        for name in imports_of(path)
    }
    assert used - homes <= BESIDE


def test_examples_import_from_openheim_alone() -> None:
    files = list(CHECKOUT.glob("docs/examples/*/src/**/*.py"))
    assert files
    assert [name for path in files for name in imports_of(path)] == []
