"""Enabled, preferred, compatible: one winner per kind and name, before anything is imported."""

from __future__ import annotations

from typing import Any

import pytest

from openheim import __version__
from openheim.errors import ConfigError
from openheim.plugins.catalogue import Candidate, Catalogue
from openheim.plugins.compatibility import rejecting_requirement
from openheim.plugins.policy import PluginPolicy, policy_from, unknown_keys


def candidate(distribution: str, *requires: str, kind: str = "providers", name: str = "openai") -> Candidate:
    return Candidate(kind, name, "module", distribution, "1.0", requires=requires)


OURS = candidate("openheim-provider-openai")
RIVAL = candidate("acme-openheim")
OUTDATED = candidate("old-openheim", "openheim-core>=99")


def statuses(policy: PluginPolicy, *rivals: Candidate) -> list[str]:
    return [ruling.status for ruling in policy.judge(rivals)]


def notes(policy: PluginPolicy, *rivals: Candidate) -> list[str]:
    return [ruling.note for ruling in policy.judge(rivals)]


def test_one_candidate_is_available() -> None:
    assert statuses(PluginPolicy(), OURS) == ["available"]
    assert PluginPolicy().judge(()) == []


def test_two_are_in_conflict_and_name_each_other() -> None:
    assert statuses(PluginPolicy(), RIVAL, OURS) == ["conflict", "conflict"]
    assert notes(PluginPolicy(), RIVAL, OURS) == [
        "also offered by openheim-provider-openai 1.0",
        "also offered by acme-openheim 1.0",
    ]


@pytest.mark.parametrize("spelling", ["acme-openheim", "Acme_OpenHeim", "acme.openheim"])
def test_a_preference_settles_it(spelling: str) -> None:
    policy = PluginPolicy(prefer={"providers.openai": spelling})
    assert statuses(policy, RIVAL, OURS) == ["available", "disabled"]
    assert notes(policy, RIVAL, OURS)[1] == "acme-openheim is preferred by [plugins.prefer]"


def test_a_preference_for_something_else_settles_nothing() -> None:
    policy = PluginPolicy(prefer={"providers.openai": "not-there", "tools.openai": "acme-openheim"})
    assert statuses(policy, RIVAL, OURS) == ["conflict", "conflict"]


def test_a_preferred_one_that_does_not_fit_is_not_replaced_silently() -> None:
    policy = PluginPolicy(prefer={"providers.openai": "old-openheim"})
    assert statuses(policy, OUTDATED, OURS) == ["incompatible", "disabled"]


def test_what_is_off_or_does_not_fit_is_no_rival() -> None:
    assert statuses(PluginPolicy(disable=("acme-openheim",)), RIVAL, OURS) == ["disabled", "available"]
    assert statuses(PluginPolicy(), OUTDATED, OURS) == ["incompatible", "available"]
    assert notes(PluginPolicy(), OUTDATED)[0] == f"asks for openheim-core>=99, and this is {__version__}"


@pytest.mark.parametrize("pattern", ["tools.web", "tools:web", "acme-web", "Acme_Web"])
def test_entries_name_a_plugin_or_a_distribution(pattern: str) -> None:
    web = candidate("acme-web", kind="tools", name="web")
    assert statuses(PluginPolicy(disable=(pattern,)), web) == ["disabled"]
    assert statuses(PluginPolicy(enable=(pattern,)), web) == ["available"]


@pytest.mark.parametrize("pattern", ["web", "providers.web", "tools.webs", "acme", ""])
def test_entries_that_do_not_match(pattern: str) -> None:
    web = candidate("acme-web", kind="tools", name="web")
    assert statuses(PluginPolicy(disable=(pattern,)), web) == ["available"]
    assert statuses(PluginPolicy(enable=(pattern,)), web) == ["disabled"]


def test_disable_goes_before_enable() -> None:
    policy = PluginPolicy(enable=("providers.openai",), disable=("openheim-provider-openai",))
    assert statuses(policy, OURS) == ["disabled"]
    assert notes(policy, OURS) == ["switched off by [plugins] disable"]
    assert notes(PluginPolicy(enable=()), OURS) == ["not named by [plugins] enable"]


def test_safe_mode_leaves_first_party_plugins() -> None:
    assert statuses(PluginPolicy(safe_mode=True), RIVAL, OURS) == ["disabled", "available"]
    spoofed = candidate("OpenHeim_Provider_OpenAI")
    assert statuses(PluginPolicy(safe_mode=True), spoofed) == ["available"]  # A name is all that is known.


@pytest.mark.parametrize(
    ("requirement", "fits"),
    [
        ("openheim-core", True),
        ("openheim-core>=0.1,<0.2", True),
        ("openheim-core (>=0.1)", True),
        ("OpenHeim_Core[keyring] >= 0.1", True),
        ("openheim-core<0.1", False),
        ("openheim-core>=1", False),
        ("openheim-core~=0.2", False),
        ("openheim-core >= not a version", False),
        ("openheim-core>=99; python_version < '3'", True),
        ("openheim-core>=99; python_version >= '3'", False),
        ("openheim-core>=99; extra == 'x'", True),
        ("openheim-core>=99; no marker at all", False),
        ("openheim-core @ file:///somewhere", True),
        ("openheim-core-extra>=99", True),
        ("other>=99", True),
        ("", True),
    ],
)
def test_compatibility_is_read_from_the_requirement(requirement: str, fits: bool) -> None:
    rejected = rejecting_requirement(candidate("acme-openheim", "x>1", requirement), "0.1.0")
    assert (rejected is None) is fits


def test_a_prerelease_of_the_core_counts_as_what_it_is() -> None:
    plugin = candidate("acme-openheim", "openheim-core>=0.2.0a1,<0.3")
    assert rejecting_requirement(plugin, "0.2.0a2") is None
    assert rejecting_requirement(plugin, "0.1.0") == "openheim-core>=0.2.0a1,<0.3"


def test_policy_from_table() -> None:
    table = {
        "enable": ["a"],
        "disable": ["b", "tools.c"],
        "safe_mode": True,
        "prefer": {"providers.openai": "x", "tools": {"web": "y"}},
        "later": "a key of another version",
    }
    policy = policy_from(table, {})
    assert policy == PluginPolicy(
        enable=("a",),
        disable=("b", "tools.c"),
        prefer={"providers.openai": "x", "tools.web": "y"},
        safe_mode=True,
    )
    assert policy_from({}, {}) == PluginPolicy()
    assert policy_from({}, {}, safe_mode=True, strict=True) == PluginPolicy(safe_mode=True, strict=True)


def test_the_environment_overrides_the_table() -> None:
    table = {"enable": ["a"], "disable": ["b"]}
    policy = policy_from(table, {"OPENHEIM_PLUGINS": " tools.x, y ,", "OPENHEIM_PLUGINS_DISABLE": "z"})
    assert policy.enable == ("tools.x", "y")
    assert policy.disable == ("z",)
    assert notes(policy, candidate("z"))[0] == "switched off by OPENHEIM_PLUGINS_DISABLE"
    assert notes(policy, candidate("q"))[0] == "not named by OPENHEIM_PLUGINS"
    emptied = policy_from(table, {"OPENHEIM_PLUGINS": "", "OPENHEIM_PLUGINS_DISABLE": ""})
    assert emptied.enable == ()
    assert emptied.disable == ()


def test_keys_that_mean_nothing_are_named() -> None:
    assert unknown_keys({"enable": [], "disable": [], "prefer": {}, "safe_mode": True, "strict": True}) == []
    assert unknown_keys({"disabel": [], "xyz": 1}) == [
        "[plugins] disabel: unknown key (did you mean disable?)",
        "[plugins] xyz: unknown key",
    ]


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ({"enable": "tools.fs"}, "enable"),
        ({"disable": {"tools": "fs"}}, "disable"),
        ({"disable": [1]}, "disable"),
        ({"safe_mode": "yes"}, "safe_mode"),
        ({"strict": 1}, "strict"),
        ({"prefer": ["x"]}, "prefer"),
        ({"prefer": {"providers.openai": 1}}, "providers.openai"),
        ({"prefer": {"providers": {"openai": ["x"]}}}, "providers.openai"),
    ],
)
def test_wrong_types_are_named(table: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError) as caught:
        policy_from(table, {})
    assert "[plugins" in caught.value.message
    assert named in caught.value.message


def test_entries_that_match_nothing_are_named() -> None:
    policy = PluginPolicy(
        enable=("openheim-provider-openai",), disable=("tools.fsx",), prefer={"providers.openai": "x"}
    )
    first, second = policy.unmatched(Catalogue((OURS,)))
    assert "'tools.fsx'" in first
    assert "'providers.openai'" in second
    assert "'x'" in second
