"""Which plugins may be used: the ``[plugins]`` section, applied to names before anything is imported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from openheim.errors import ConfigError
from openheim.plugins.catalogue import Candidate, Catalogue, normalise, plugin_key

__all__ = ("PluginPolicy", "Ruling", "Status", "matches", "policy_from", "unknown_keys")

#: What a row of the listing says. ``loaded`` and ``error`` exist only in a process that uses plugins.
Status: TypeAlias = Literal["available", "disabled", "incompatible", "conflict", "loaded", "error"]

_KEYS = ("enable", "disable", "prefer", "safe_mode", "strict")

_MANAGED = "the managed policy"

_ENABLE_VARIABLE = "OPENHEIM_PLUGINS"
_DISABLE_VARIABLE = "OPENHEIM_PLUGINS_DISABLE"


@dataclass(frozen=True, slots=True)
class Ruling:
    """What is to be said of one candidate, by the policy or by what came of loading it. ``note`` gives the reason."""

    candidate: Candidate
    status: Status
    note: str = ""


@dataclass(frozen=True, slots=True)
class PluginPolicy:
    """Which plugins may be used.

    Args:
        enable: if not None, only plugins named here are used. Entries of ``enable`` and ``disable`` are ``kind.name``
            (``tools.web``) or the name of a distribution.
        disable: plugins that are not used, even if enabled.
        prefer: ``kind.name`` to the distribution that wins where several offer that name.
        safe_mode: first-party plugins only.
        strict: one broken plugin fails the command instead of being set aside.
        enable_source: where ``enable`` was set, for messages; ``disable_source`` likewise.
        managed: those entries of ``disable`` that come from the managed policy, for messages.
    """

    enable: tuple[str, ...] | None = None
    disable: tuple[str, ...] = ()
    prefer: Mapping[str, str] = field(default_factory=dict)
    safe_mode: bool = False
    strict: bool = False
    enable_source: str = "[plugins] enable"
    disable_source: str = "[plugins] disable"
    managed: tuple[str, ...] = ()

    def reason_disabled(self, candidate: Candidate) -> str:
        """Why the candidate is switched off, or ``""``."""
        if self.safe_mode and not candidate.first_party:
            return "safe mode uses first-party plugins only"
        if any(matches(pattern, candidate) for pattern in self.managed):
            return f"switched off by {_MANAGED}"
        if any(matches(pattern, candidate) for pattern in self.disable):
            return f"switched off by {self.disable_source}"
        if self.enable is not None and not any(matches(pattern, candidate) for pattern in self.enable):
            return f"not named by {self.enable_source}"
        return ""

    def judge(self, rivals: Sequence[Candidate]) -> list[Ruling]:
        """Rules over all candidates of one kind and name. At most one of them is ``available``.

        What is switched off is no rival, nor is what is incompatible, unless it is the preferred one: a preference
        never turns into the use of another distribution by itself.
        """
        rulings: list[Ruling] = []
        usable: list[Candidate] = []
        for candidate in rivals:
            reason = self.reason_disabled(candidate)
            if reason:
                rulings.append(Ruling(candidate, "disabled", reason))
            else:
                usable.append(candidate)
        preferred = [c for c in usable if normalise(c.distribution) == normalise(self.prefer.get(c.dotted, ""))]
        if preferred:
            winner = preferred[0]
            note = f"{winner.distribution} is preferred by [plugins.prefer]"
            rulings += [Ruling(c, "disabled", note) for c in usable if c is not winner]
            usable = [winner]
        compatible: list[Candidate] = []
        for candidate in usable:
            refused = _incompatibility(candidate)
            if refused:
                rulings.append(Ruling(candidate, "incompatible", refused))
            else:
                compatible.append(candidate)
        if len(compatible) == 1:
            rulings.append(Ruling(compatible[0], "available"))
        for candidate in compatible if len(compatible) > 1 else ():
            others = ", ".join(c.origin for c in compatible if c is not candidate)
            rulings.append(Ruling(candidate, "conflict", f"also offered by {others}"))
        order = {id(candidate): place for place, candidate in enumerate(rivals)}
        return sorted(rulings, key=lambda ruling: order[id(ruling.candidate)])

    def unmatched(self, catalogue: Catalogue) -> list[str]:
        """Entries that match nothing installed, one line each: most often a slip of the pen."""
        lines = []
        for entries, source in ((self.enable or (), self.enable_source), (self.disable, self.disable_source)):
            lines += [
                f"{source}: {entry!r} matches nothing installed"
                for entry in entries
                if not any(matches(entry, candidate) for candidate in catalogue.candidates)
            ]
        for key, distribution in self.prefer.items():
            offered = [c for c in catalogue.candidates if c.dotted == key]
            if not any(normalise(c.distribution) == normalise(distribution) for c in offered):
                lines.append(f"[plugins.prefer] {key!r}: {distribution!r} is not installed or does not offer it")
        return lines


def matches(pattern: str, candidate: Candidate) -> bool:
    """Whether an entry of ``enable`` or ``disable`` means this candidate."""
    key = plugin_key(pattern)
    return candidate.key == key if key is not None else normalise(pattern) == normalise(candidate.distribution)


def policy_from(
    table: Mapping[str, Any],
    environ: Mapping[str, str],
    *,
    safe_mode: bool = False,
    strict: bool = False,
    managed: Mapping[str, Any] | None = None,
) -> PluginPolicy:
    """Makes the policy from the ``[plugins]`` table and the environment.

    ``OPENHEIM_PLUGINS`` and ``OPENHEIM_PLUGINS_DISABLE`` (names separated by commas) stand in for ``enable`` and
    ``disable``; an empty ``OPENHEIM_PLUGINS`` enables nothing. Keys that are not known are ignored here;
    :func:`unknown_keys` names them.

    Args:
        table: the section, possibly empty.
        environ: the environment.
        safe_mode: from the command line; or-ed with the table's ``safe_mode``. ``strict`` likewise.
        managed: the section in the managed policy, which the environment does not stand in for.

    Raises:
        ConfigError: a key has a value of the wrong type.
    """
    enable = _names(table, "enable")
    disable = _names(table, "disable") or ()
    sources: dict[str, str] = {}
    if _ENABLE_VARIABLE in environ:
        enable = _listed(environ[_ENABLE_VARIABLE])
        sources["enable_source"] = _ENABLE_VARIABLE
    if _DISABLE_VARIABLE in environ:
        disable = _listed(environ[_DISABLE_VARIABLE])
        sources["disable_source"] = _DISABLE_VARIABLE
    managed = managed or {}
    if "enable" in managed:
        enable = _names(managed, "enable")
        sources["enable_source"] = _MANAGED
    refused = _names(managed, "disable") or ()
    return PluginPolicy(
        enable=enable,
        disable=tuple(dict.fromkeys((*disable, *refused))),
        prefer=_preferences(table.get("prefer", {})),
        safe_mode=safe_mode or _flag(table, "safe_mode"),
        strict=strict or _flag(table, "strict"),
        managed=refused,
        **sources,
    )


def unknown_keys(table: Mapping[str, Any]) -> list[str]:
    """One line for each key of ``[plugins]`` that means nothing."""
    lines = []
    for key in table:
        if key not in _KEYS:
            from openheim._slips import closest

            near = closest(key, _KEYS)
            lines.append(f"[plugins] {key}: unknown key" + (f" (did you mean {near}?)" if near else ""))
    return lines


def _listed(text: str) -> tuple[str, ...]:
    return tuple(name for part in text.split(",") if (name := part.strip()))


def _names(table: Mapping[str, Any], key: str) -> tuple[str, ...] | None:
    value = table.get(key)
    if value is None:
        return None
    if (
        not isinstance(value, Iterable)
        or isinstance(value, str | Mapping)
        or not all(isinstance(v, str) for v in value)
    ):
        raise ConfigError(
            f"[plugins] {key}: must be a list of names", hint=f'for instance {key} = ["tools.shell", "acme-openheim"]'
        )
    return tuple(value)


def _flag(table: Mapping[str, Any], key: str) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        raise ConfigError(f"[plugins] {key}: must be true or false")
    return value


def _preferences(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise _wrong_preference("[plugins] prefer")
    found: dict[str, str] = {}
    for key, entry in value.items():
        # Without quotes around the key, TOML reads providers.openai as a table in a table; both are understood.
        entries = {f"{key}.{name}": v for name, v in entry.items()} if isinstance(entry, Mapping) else {key: entry}
        for dotted, distribution in entries.items():
            if not isinstance(distribution, str):
                raise _wrong_preference(f"[plugins.prefer] {dotted}")
            found[dotted] = distribution
    return found


def _wrong_preference(where: str) -> ConfigError:
    return ConfigError(
        f"{where}: must be the name of a distribution", hint='for instance "providers.openai" = "acme-openheim"'
    )


def _incompatibility(candidate: Candidate) -> str:
    from openheim import __version__
    from openheim.plugins.compatibility import rejecting_requirement

    requirement = rejecting_requirement(candidate)
    return f"asks for {requirement}, and this is {__version__}" if requirement else ""
