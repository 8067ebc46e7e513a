"""Registration and calls: one plugin answers for its name, and nothing half done is left."""

from __future__ import annotations

import json
import subprocess
import sys
import types
from collections import UserDict
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from openheim import ProviderSettings, hookimpl
from openheim.errors import (
    AuthError,
    ConfigError,
    PluginConflictError,
    PluginDisabledError,
    PluginLoadError,
)
from openheim.events import Notice
from openheim.plugins.catalogue import Catalogue
from openheim.plugins.host import PluginHost
from openheim.plugins.policy import PluginPolicy
from openheim.tools import FunctionTool
from tests.plugins.distributions import make_distribution
from tests.plugins.hosts import context, host_over

SETTINGS = ProviderSettings(name="mine", kind="own")
HTTP: Any = object()


def empty_host(policy: PluginPolicy | None = None) -> PluginHost:
    return PluginHost(policy or PluginPolicy(), report=pytest.fail, catalogue=Catalogue())


class Provider:
    wire = "own"
    default_model = "m"

    def __init__(self, kind: str) -> None:
        self.kind = kind

    async def generate(self, request: Any, emit: Any) -> Any: ...


class ProviderPlugin:
    @hookimpl
    def openheim_create_provider(self, kind: str) -> Any:
        return Provider(kind)


class Returning:
    """Every hook that creates something returns what was given."""

    def __init__(self, result: Any) -> None:
        self.result = result

    def _answer(self) -> Any:
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result

    @hookimpl
    def openheim_create_provider(self) -> Any:
        return self._answer()

    @hookimpl
    def openheim_create_embedder(self) -> Any:
        return self._answer()

    @hookimpl
    def openheim_create_transport(self) -> Any:
        return self._answer()

    @hookimpl
    def openheim_create_gate(self) -> Any:
        return self._answer()


# What a plugin is


def test_a_given_plugin_answers_for_its_name() -> None:
    host = empty_host()
    loaded = host.register(ProviderPlugin(), kind="providers", name="own")
    assert (loaded.kind, loaded.name, loaded.distribution, loaded.settings_model) == (
        "providers",
        "own",
        "(given)",
        None,
    )
    provider: Any = host.create_provider("own", SETTINGS, HTTP)
    assert provider.kind == "own"
    assert [(row.candidate.label, row.status) for row in host.rows()] == [("providers:own", "loaded")]
    assert host.names("providers") == ["own"]


def test_a_name_is_given_once() -> None:
    host = empty_host()
    host.register(ProviderPlugin(), kind="providers", name="own", distribution="mine")
    with pytest.raises(PluginConflictError, match=r"providers:own is registered already, by mine"):
        host.register(ProviderPlugin(), kind="providers", name="own")


def test_a_name_that_is_switched_off_is_refused() -> None:
    host = empty_host(PluginPolicy(disable=("providers.own",)))
    with pytest.raises(PluginDisabledError):
        host.register(ProviderPlugin(), kind="providers", name="own")


def test_one_object_may_stand_at_several_names() -> None:
    host = empty_host()
    plugin = ProviderPlugin()
    for name in ("one", "two", "three"):
        host.register(plugin, kind="providers", name=name)
    created: list[Any] = [host.create_provider(name, SETTINGS, HTTP) for name in ("one", "two", "three")]
    assert [provider.kind for provider in created] == ["one", "two", "three"]


def module_with(**members: Any) -> types.ModuleType:
    module = types.ModuleType("a_plugin")
    vars(module).update(members)
    return module


async def _async_hook(kind: str) -> Any: ...


def _unmarked(kind: str) -> Any: ...


def _misnamed(kind: str) -> Any: ...


def _later(kind: str) -> Any: ...


def _other_argument(kind: str, nonsense: int) -> Any: ...


def _observe(event: Any) -> None: ...


def _wrapper(event: Any) -> Any:
    yield


def _old_wrapper(kind: str) -> Any:
    yield


class _MeantAsObject:
    @hookimpl
    def openheim_create_provider(self, kind: str) -> Any: ...


@pytest.mark.parametrize(
    ("plugin", "reason"),
    [
        (module_with(openheim_create_provider=hookimpl(_async_hook)), "openheim_create_provider is async"),
        (module_with(), "it has no hook implementations"),
        (None, "it has no hook implementations"),
        (module_with(openheim_create_provider=_unmarked), "openheim_create_provider is not marked with @hookimpl"),
        (module_with(openheim_create_provider=hookimpl(_other_argument)), "openheim_create_provider takes nonsense"),
        (module_with(openheim_make_provider=hookimpl(_misnamed)), "did you mean openheim_create_provider?"),
        (module_with(openheim_observe=hookimpl(_observe)), "it does not implement openheim_create_provider"),
        (module_with(openheim_observe=hookimpl(wrapper=True)(_wrapper)), "openheim_observe cannot be wrapped"),
        (
            module_with(openheim_create_provider=hookimpl(hookwrapper=True)(_old_wrapper)),
            "openheim_create_provider is marked with hookwrapper=True, pluggy's old form; use wrapper=True",
        ),
        (_MeantAsObject, "_MeantAsObject is a class"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_plugin_is_refused_as_a_whole(plugin: Any, reason: str) -> None:
    host = empty_host()
    with pytest.raises(PluginLoadError) as caught:
        host.register(plugin, kind="providers", name="own")
    assert reason in caught.value.message
    assert host.rows() == []
    # Nothing of it is left, so the name is free and the hook has one implementation.
    host.register(ProviderPlugin(), kind="providers", name="own")
    provider: Any = host.create_provider("own", SETTINGS, HTTP)
    assert provider.kind == "own"


def test_hooks_of_a_later_openheim_may_be_optional() -> None:
    later = hookimpl(optionalhook=True)(_later)
    plugin = module_with(openheim_create_provider=hookimpl(lambda kind: Provider(kind)), openheim_not_yet=later)
    host = empty_host()
    host.register(plugin, kind="providers", name="own")
    provider: Any = host.create_provider("own", SETTINGS, HTTP)
    assert provider.kind == "own"


# Creating


def test_a_plugin_answers_for_its_own_name_only() -> None:
    host = empty_host()
    host.register(Returning(Provider("from the other")), kind="providers", name="other")
    host.register(ProviderPlugin(), kind="providers", name="own")
    host.register(Returning(Provider("from a general plugin")), kind="plugins", name="greedy")
    for name in ("own", "other"):
        provider: Any = host.create_provider(name, SETTINGS, HTTP)
        assert provider.kind == ("own" if name == "own" else "from the other")


class _Wrapping:
    def __init__(self) -> None:
        self.seen: list[str] = []

    @hookimpl(wrapper=True)
    def openheim_create_provider(self, kind: str) -> Any:
        self.seen.append(kind)
        provider = yield
        provider.wrapped = True
        return provider


class _WrappingProviderPlugin(_Wrapping):
    @hookimpl(specname="openheim_create_provider")
    def create(self, kind: str) -> Any:
        return Provider(kind)


def test_general_plugins_wrap_and_others_do_not() -> None:
    host = empty_host()
    general, foreign = _Wrapping(), _WrappingProviderPlugin()
    host.register(general, kind="plugins", name="audit")
    host.register(foreign, kind="providers", name="foreign")
    host.register(ProviderPlugin(), kind="providers", name="own")
    provider: Any = host.create_provider("own", SETTINGS, HTTP)
    assert provider.wrapped
    assert (general.seen, foreign.seen) == (["own"], [])


# Wrappers that fail


class _Failing:
    """A wrapper that does what it was told, before its yield and after."""

    def __init__(self, before: Any = None, after: Any = None) -> None:
        self.before = before or (lambda: None)
        self.after = after or (lambda outcome: outcome)
        self.calls = 0

    @hookimpl(wrapper=True)
    def openheim_create_provider(self, kind: str) -> Any:
        self.calls += 1
        self.before()
        outcome = yield
        return self.after(outcome)

    @hookimpl(wrapper=True)
    def openheim_tools(self) -> Any:
        self.calls += 1
        self.before()
        outcome = yield
        return self.after(outcome)


class _Early:
    @hookimpl(wrapper=True)
    def openheim_create_provider(self) -> Any:
        if self:
            return None
        yield


class _YieldsTwice:
    @hookimpl(wrapper=True)
    def openheim_create_provider(self) -> Any:
        provider = yield
        yield
        return provider


class _ExitsWhenClosed:
    @hookimpl(wrapper=True)
    def openheim_create_provider(self) -> Any:
        provider = yield
        try:
            yield
        finally:
            raise SystemExit(0)
        return provider


class _Untouchable:
    """Ends the program when it is looked at."""

    def __getattr__(self, name: str) -> Any:
        raise SystemExit(0)


def raising(err: BaseException) -> Any:
    def fail(*_outcome: Any) -> Any:
        raise err

    return fail


async def a_coroutine() -> None: ...


WRONG: dict[str, tuple[Any, str]] = {
    "raises before": (lambda: _Failing(before=raising(ValueError("oops"))), "ValueError: oops"),
    "raises after": (lambda: _Failing(after=raising(ValueError("oops"))), "ValueError: oops"),
    "exits": (lambda: _Failing(after=raising(SystemExit(3))), "SystemExit: 3"),
    "forgets to return": (lambda: _Failing(after=lambda outcome: None), "it returned None"),
    "returns something else": (
        lambda: _Failing(after=lambda outcome: "text"),
        "it returned str, which has no generate",
    ),
    "returns a coroutine": (lambda: _Failing(after=lambda outcome: a_coroutine()), "it returned a coroutine"),
    "does not yield": (_Early, "it returned before its yield"),
    "yields twice": (_YieldsTwice, "it yields more than once"),
    "exits when it is closed": (_ExitsWhenClosed, "it yields more than once"),
    "returns what cannot be looked at": (lambda: _Failing(after=lambda outcome: _Untouchable()), "SystemExit"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrapper_that_fails_is_named_and_set_aside(name: str) -> None:
    make, reason = WRONG[name]
    lines: list[str] = []
    host = PluginHost(PluginPolicy(), report=lines.append, catalogue=Catalogue())
    outer, faulty, innermost = _Wrapping(), make(), _Wrapping()
    host.register(innermost, kind="plugins", name="a", distribution="one")
    host.register(faulty, kind="plugins", name="b", distribution="faulty")
    host.register(outer, kind="plugins", name="c", distribution="other")
    host.register(ProviderPlugin(), kind="providers", name="own", distribution="acme")
    for count in (1, 2):
        provider: Any = host.create_provider("own", SETTINGS, HTTP)
        assert (provider.kind, provider.wrapped) == ("own", True)
        assert outer.seen == innermost.seen == ["own"] * count
        assert getattr(faulty, "calls", 1) == 1
    (line,) = lines
    assert line.startswith("Plugin plugins:b (faulty) could not wrap openheim_create_provider: ")
    assert reason in line
    assert {row.candidate.label: row.status for row in host.rows()} == {
        "plugins:a": "loaded",
        "plugins:b": "error",
        "plugins:c": "loaded",
        "providers:own": "loaded",
    }


@pytest.mark.parametrize("name", WRONG)
def test_under_a_strict_policy_it_ends_the_call(name: str) -> None:
    make, reason = WRONG[name]
    host = empty_host(PluginPolicy(strict=True))
    host.register(_Wrapping(), kind="plugins", name="a")
    host.register(make(), kind="plugins", name="b", distribution="faulty")
    host.register(ProviderPlugin(), kind="providers", name="own")
    with pytest.raises(PluginLoadError) as caught:
        host.create_provider("own", SETTINGS, HTTP)
    assert caught.value.message.startswith("Plugin plugins:b (faulty) could not wrap openheim_create_provider: ")
    assert reason in caught.value.message


def test_a_wrapper_of_toolsets_that_fails_costs_no_tools(tmp_path: Path) -> None:
    lines: list[str] = []
    host = PluginHost(PluginPolicy(), report=lines.append, catalogue=Catalogue())
    faulty = _Failing(after=lambda tools: None)
    host.register(faulty, kind="plugins", name="b", distribution="faulty")
    for name in ("one", "two"):
        host.register(_Toolset(FunctionTool(a_tool, name=name)), kind="tools", name=name)
    assert [offer.name for offer in host.tools(context(tmp_path))] == ["one", "two"]
    assert faulty.calls == 1
    (line,) = lines
    assert line.startswith("Plugin plugins:b (faulty) could not wrap openheim_tools: it returned NoneType")


async def a_tool() -> str:
    return "done"


class _Toolset:
    def __init__(self, *tools: Any) -> None:
        self.tools = tools

    @hookimpl
    def openheim_tools(self) -> Any:
        return self.tools


@pytest.mark.parametrize(
    ("result", "reason"),
    [(None, "it returned None"), ("text", "it returned str"), (ValueError("bad hook"), "ValueError: bad hook")],
)
def test_what_a_wrapper_only_passes_on_is_not_its_fault(result: Any, reason: str) -> None:
    lines: list[str] = []
    host = PluginHost(PluginPolicy(), report=lines.append, catalogue=Catalogue())
    host.register(_Failing(after=lambda outcome: outcome), kind="plugins", name="b", distribution="innocent")
    host.register(Returning(result), kind="providers", name="own", distribution="acme")
    with pytest.raises(PluginLoadError) as caught:
        host.create_provider("own", SETTINGS, HTTP)
    assert caught.value.message.startswith("Plugin providers:own (acme) could not run openheim_create_provider: ")
    assert reason in caught.value.message
    assert lines == []


class _Rescuing:
    """A wrapper that puts a provider, or another error, in the place of an error."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    @hookimpl(wrapper=True)
    def openheim_create_provider(self) -> Any:
        try:
            return (yield)
        except ValueError as err:
            if isinstance(self.answer, BaseException):
                raise self.answer from err
            return self.answer


def test_a_wrapper_may_answer_for_what_failed() -> None:
    host = empty_host()
    host.register(_Rescuing(Provider("spare")), kind="plugins", name="b")
    host.register(Returning(ValueError("bad hook")), kind="providers", name="own")
    provider: Any = host.create_provider("own", SETTINGS, HTTP)
    assert provider.kind == "spare"


def test_a_wrapper_may_put_an_error_into_other_words() -> None:
    host = empty_host()
    host.register(_Rescuing(LookupError("in other words")), kind="plugins", name="b")
    host.register(Returning(ValueError("bad hook")), kind="providers", name="own", distribution="acme")
    with pytest.raises(PluginLoadError, match=r"providers:own \(acme\) .* LookupError: in other words"):
        host.create_provider("own", SETTINGS, HTTP)


@pytest.mark.parametrize("place", ["before", "after"])
def test_a_wrapper_may_refuse_with_an_error_of_ours(place: str) -> None:
    host = empty_host()
    host.register(_Failing(**{place: raising(AuthError("not here"))}), kind="plugins", name="b")
    host.register(ProviderPlugin(), kind="providers", name="own")
    for _ in range(2):
        with pytest.raises(AuthError, match="not here"):
            host.create_provider("own", SETTINGS, HTTP)


def test_an_interrupt_reaches_the_wrappers_and_is_nobodys_fault() -> None:
    cleaned: list[str] = []

    class Cleaning:
        @hookimpl(wrapper=True)
        def openheim_create_provider(self) -> Any:
            try:
                return (yield)
            finally:
                cleaned.append("up")

    host = empty_host()
    host.register(Cleaning(), kind="plugins", name="b")
    host.register(Returning(KeyboardInterrupt()), kind="providers", name="own")
    with pytest.raises(KeyboardInterrupt):
        host.create_provider("own", SETTINGS, HTTP)
    assert cleaned == ["up"]


CREATORS: dict[str, Any] = {
    "providers": lambda host: host.create_provider("own", SETTINGS, HTTP),
    "embeddings": lambda host: host.create_embedder("own", SETTINGS, "vectors-1", HTTP),
    "transports": lambda host: host.create_transport("own", None),
    "gates": lambda host: host.create_gate("own", None),
}


@pytest.mark.parametrize("kind", CREATORS)
@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (None, "it returned None"),
        (object(), "it returned object, which has no"),
        (ValueError("bad\nhook"), "ValueError: bad hook"),
        (SystemExit(4), "SystemExit: 4"),
    ],
    ids=["none", "object", "exception", "exit"],
)
def test_a_hook_that_fails(kind: str, result: Any, reason: str) -> None:
    host = empty_host()
    host.register(Returning(result), kind=kind, name="own", distribution="acme")
    with pytest.raises(PluginLoadError) as caught:
        CREATORS[kind](host)
    assert caught.value.message.startswith(f"Plugin {kind}:own (acme) could not run openheim_create_")
    assert reason in caught.value.message
    assert caught.value.__cause__ is (result if isinstance(result, BaseException) else None)
    (row,) = host.rows()
    assert row.status == "error"
    assert reason in row.note


@pytest.mark.parametrize("kind", CREATORS)
def test_what_a_hook_returns_may_end_the_program_when_it_is_looked_at(kind: str) -> None:
    host = empty_host()
    host.register(Returning(_Untouchable()), kind=kind, name="own", distribution="acme")
    with pytest.raises(PluginLoadError, match=r"\(acme\) could not run openheim_create_.*SystemExit: 0"):
        CREATORS[kind](host)


def test_a_plugin_that_ends_the_program_when_it_is_looked_at_is_refused() -> None:
    class Untouchable:
        def __dir__(self) -> Any:
            raise SystemExit(0)

    host = empty_host()
    with pytest.raises(PluginLoadError, match="SystemExit: 0"):
        host.register(Untouchable(), kind="providers", name="own")


def test_our_own_errors_pass_through_a_hook() -> None:
    host = empty_host()
    host.register(Returning(AuthError("no key")), kind="providers", name="own")
    with pytest.raises(AuthError, match="no key"):
        host.create_provider("own", SETTINGS, HTTP)


def test_a_coroutine_is_no_answer() -> None:
    async def answer() -> None: ...

    host = empty_host()
    host.register(Returning(answer()), kind="gates", name="own")
    with pytest.raises(PluginLoadError, match="coroutine"):
        host.create_gate("own", None)


def test_what_was_an_error_once_may_work_later() -> None:
    host = empty_host()
    plugin = Returning(ValueError("not yet"))
    host.register(plugin, kind="providers", name="own")
    with pytest.raises(PluginLoadError):
        host.create_provider("own", SETTINGS, HTTP)
    plugin.result = Provider("own")
    host.create_provider("own", SETTINGS, HTTP)
    assert [row.status for row in host.rows()] == ["loaded"]


# Settings


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    max_bytes: int = 10
    token: SecretStr | None = None
    level: int = Field(default=1, le=3, alias="depth")


def with_settings(model: Any) -> PluginHost:
    host = empty_host()
    host.register(module_with(openheim_create_gate=hookimpl(lambda: None), Settings=model), kind="gates", name="own")
    return host


def test_settings_are_an_instance_of_the_plugins_model() -> None:
    host = with_settings(Settings)
    assert host.settings_model("gates", "own") is Settings
    assert host.validate_settings("gates", "own", {}, where="[gates.own]") == Settings()
    settings = host.validate_settings("gates", "own", {"max_bytes": 3, "depth": 2}, where="[gates.own]")
    assert (settings.max_bytes, settings.level) == (3, 2)


@pytest.mark.parametrize(
    ("table", "message", "hint"),
    [
        ({"max_bites": 1}, "[gates.own] max_bites: unknown key", "did you mean max_bytes?"),
        ({"zzz": 1}, "[gates.own] zzz: unknown key", "known keys: max_bytes, token, depth"),
        ({"level": 1}, "[gates.own] level: unknown key", None),
        ({"max_bytes": "many"}, "[gates.own] max_bytes: should be a valid integer", None),
        ({"depth": 9}, "[gates.own] depth: should be less than or equal to 3", ""),
        ({"max_bytes": [], "depth": 9, "x": 1}, "depth: should be", None),
    ],
)
def test_wrong_settings_are_named(table: dict[str, Any], message: str, hint: str | None) -> None:
    with pytest.raises(ConfigError) as caught:
        with_settings(Settings).validate_settings("gates", "own", table, where="[gates.own]")
    assert message in caught.value.message
    assert hint is None or caught.value.hint == hint


def test_wrong_settings_are_not_quoted() -> None:
    with pytest.raises(ConfigError) as caught:
        with_settings(Settings).validate_settings("gates", "own", {"token": ["sk-secret"]}, where="[gates.own]")
    err: BaseException | None = caught.value
    assert "token" in str(err)
    assert "sk-secret" not in str(err)
    # --debug prints what an error was raised from.
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_model_that_forgot_to_forbid_is_held_to_it() -> None:
    class Lax(BaseModel):
        known: int = 1

    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")

    with pytest.raises(ConfigError, match="unknown key"):
        with_settings(Lax).validate_settings("gates", "own", {"other": 1}, where="[gates.own]")
    assert with_settings(Open).validate_settings("gates", "own", {"other": 1}, where="[gates.own]").other == 1


def test_a_plugin_without_settings_takes_none() -> None:
    host = with_settings(None)
    assert host.validate_settings("gates", "own", {}, where="[gates.own]") is None
    with pytest.raises(ConfigError, match=r"\[gates.own\] x: this plugin has no settings"):
        host.validate_settings("gates", "own", {"x": 1}, where="[gates.own]")


def test_settings_that_are_no_model_are_the_plugins_fault() -> None:
    with pytest.raises(PluginLoadError, match="its Settings is no pydantic model"):
        with_settings({"x": 1}).validate_settings("gates", "own", {}, where="[gates.own]")


def test_settings_may_be_made_when_asked_for() -> None:
    class Lazy:
        def __getattr__(self, name: str) -> Any:
            if name == "Settings":
                return Settings
            raise AttributeError(name)

        @hookimpl
        def openheim_create_gate(self) -> Any: ...

    host = empty_host()
    host.register(Lazy(), kind="gates", name="own")
    assert host.settings_model("gates", "own") is Settings


# General plugins


def test_observers_take_the_arguments_they_name() -> None:
    seen: list[Any] = []
    implementations = {
        "whole": lambda event, session_id: seen.append(("whole", event, session_id)),
        "event": lambda event: seen.append(("event", event)),
        "session": lambda session_id: seen.append(("session", session_id)),
        "swapped": lambda session_id, event: seen.append(("swapped", event, session_id)),
        "nothing": lambda: seen.append("nothing"),
    }
    host = empty_host()
    for name, function in implementations.items():
        host.register(module_with(openheim_observe=hookimpl(function)), kind="plugins", name=name)
    observers = host.observers()
    assert host.observers() is observers
    event = Notice("info", "hello")
    for _plugin, call in observers:
        call(event=event, session_id="s1")
    assert [observer.plugin for observer in observers] == [f"plugins:{n} (given)" for n in sorted(implementations)]
    assert seen == [
        ("event", event),
        "nothing",
        ("session", "s1"),
        ("swapped", event, "s1"),
        ("whole", event, "s1"),
    ]


def test_a_broken_general_plugin_is_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = "from openheim import hookimpl\n@hookimpl\ndef openheim_observe(event): pass\n"
    make_distribution(
        tmp_path,
        "oh-general",
        entry_points={"openheim.plugins": ["bad = general_bad", "good = general_good"]},
        modules={"general_bad": "raise RuntimeError('broken')", "general_good": good},
    )
    reported = host_over(tmp_path, monkeypatch)
    assert [observer.plugin for observer in reported.host.observers()] == ["plugins:good (oh-general 1.0)"]
    (line,) = reported.lines
    assert "plugins:bad (oh-general 1.0)" in line
    assert "RuntimeError: broken" in line
    reported.host.register(ProviderPlugin(), kind="providers", name="own")
    reported.host.create_provider("own", SETTINGS, HTTP)
    assert len(reported.lines) == 1
    with pytest.raises(PluginLoadError):
        host_over(tmp_path, monkeypatch, PluginPolicy(strict=True)).host.observers()


class _ExitingMapping(UserDict[str, Any]):
    def __iter__(self) -> Any:
        raise SystemExit(0)


def test_commands_are_gathered_and_failures_set_aside() -> None:
    lines: list[str] = []
    host = PluginHost(PluginPolicy(), report=lines.append, catalogue=Catalogue())
    one, two = object(), object()

    def offer(name: str, result: Any) -> None:
        answer = Returning(result)
        plugin = module_with(openheim_commands=hookimpl(lambda: answer._answer()))
        host.register(plugin, kind="plugins", name=name, distribution=f"oh-{name}")

    offer("a", {"mine": one})
    offer("b", {"mine": two, "other": two})
    offer("c", ["no mapping"])
    offer("d", RuntimeError("bad hook"))
    offer("e", None)
    offer("f", _ExitingMapping(third=one))
    assert host.commands() == {"mine": one, "other": two}
    assert len(lines) == 4
    assert "'mine' of oh-b" in lines[0]
    assert "oh-c" in lines[1]
    assert "bad hook" in lines[2]
    assert "SystemExit: 0" in lines[3]


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys, json\n"
        "from openheim.plugins.host import PluginHost\n"
        "from openheim.plugins.policy import PluginPolicy\n"
        "host = PluginHost(PluginPolicy(), report=print)\n"
        "host.names('tools')\n"
        "print(json.dumps(sorted(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=True)
    assert not {"pluggy", "stevedore", "pydantic", "httpx", "anyio", "asyncio"} & set(json.loads(done.stdout))


def test_hook_calls_are_traced_without_their_arguments(tmp_path: Path) -> None:
    code = (
        "from openheim import hookimpl, ProviderSettings\n"
        "from openheim.plugins.host import PluginHost\n"
        "from openheim.plugins.policy import PluginPolicy\n"
        "class Gate:\n"
        "    async def decide(self): ...\n"
        "class Plugin:\n"
        "    @hookimpl\n"
        "    def openheim_create_gate(self, settings): return Gate()\n"
        "host = PluginHost(PluginPolicy(), report=print)\n"
        "host.register(Plugin(), kind='gates', name='own')\n"
        "host.create_gate('own', 'sk-secret')\n"
    )
    for value, traced in (("1", True), ("0", False), ("", False)):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"OPENHEIM_TRACE_PLUGINS": value, "OPENHEIM_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=50,
            check=True,
        )
        assert ("openheim_create_gate by gates:own: Gate in" in done.stderr) is traced
        assert "sk-secret" not in done.stderr
        assert done.stdout == ""
