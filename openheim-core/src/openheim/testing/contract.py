"""What all contract suites share. Importing this takes pytest."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from functools import cache
from importlib.metadata import EntryPoint
from typing import Any, ClassVar

import pytest

from openheim.plugins.catalogue import Catalogue
from openheim.plugins.host import PluginHost
from openheim.plugins.policy import PluginPolicy
from openheim.testing.imports import HEAVY_MODULES, ImportReport, import_report

__all__ = ("Contract", "report_of")

_OURS = "openheim.testing."


class Contract(ABC):
    """Base of the suites: a plugin under test, and the tests that hold for plugins of every kind.

    A test that a plugin cannot pass for now is replaced by one marked with ``pytest.mark.xfail(reason="…")``; replacing
    it in any other way is refused, since the suite would then say less than it seems to.

    Attributes:
        plugin: what stands at the entry point: ``"package.plugin"`` or ``"package.plugin:object"``.
        kind: the group without ``openheim.``, set by each suite.
    """

    plugin: ClassVar[str] = ""
    kind: ClassVar[str]

    pytestmark = pytest.mark.anyio

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__module__.startswith(_OURS):
            return
        for name, inherited in _inherited_tests(cls).items():
            replacement = inspect.getattr_static(cls, name)
            if replacement is not inherited and not _is_expected_to_fail(replacement):
                raise TypeError(
                    f"{cls.__name__} replaces the inherited {name}: mark it with pytest.mark.xfail(reason='…'), "
                    "or give it a name of its own"
                )
        if not cls.plugin:
            raise TypeError(f"{cls.__name__} does not say what it tests: set plugin = 'your_package.plugin'")

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    @pytest.fixture
    def imported(self) -> ImportReport:
        """What importing the plugin's module costs and does."""
        return report_of(self.plugin.partition(":")[0])

    @pytest.fixture
    def host(self) -> PluginHost:
        """A host that knows this plugin only, and raises whatever is wrong with it."""
        host = PluginHost(PluginPolicy(strict=True), report=lambda line: pytest.fail(line), catalogue=Catalogue())
        host.register(_load(self.plugin), kind=self.kind, name=self._name(), distribution=self.plugin)
        return host

    @abstractmethod
    def _name(self) -> str:
        """The name that the plugin is registered under."""

    def test_import_is_cheap(self, imported: ImportReport) -> None:
        heavy = imported.loaded(*HEAVY_MODULES)
        assert not heavy, (
            f"importing {imported.module} imports {', '.join(heavy)}; import it inside the hook or where it is used"
        )

    def test_import_does_nothing_else(self, imported: ImportReport) -> None:
        assert not imported.actions, f"importing {imported.module} does this: {', '.join(imported.actions)}"
        assert not imported.printed, (
            f"importing {imported.module} prints {imported.printed[:80]!r}; stdout may be a protocol's pipe"
        )

    def test_host_accepts_the_plugin(self, host: PluginHost) -> None:
        """Its hooks are known, take arguments that exist, and are not async; the fixture has tried it."""
        assert host.names(self.kind) == [self._name()]


@cache
def report_of(module: str) -> ImportReport:
    return import_report(module)


def _load(value: str) -> Any:
    return EntryPoint("contract", value, "openheim").load()


def _inherited_tests(cls: type) -> dict[str, Any]:
    """The tests of our own classes that a class should have, by name."""
    tests: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith(_OURS):
            tests.update((name, value) for name, value in vars(base).items() if name.startswith("test_"))
    return tests


def _is_expected_to_fail(test: Any) -> bool:
    marks = getattr(test, "pytestmark", [])
    return any(mark.name == "xfail" and str(mark.kwargs.get("reason", "")).strip() for mark in marks)
