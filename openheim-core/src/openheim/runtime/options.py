"""How a session behaves beyond what its metadata says, and what a managed policy settles of that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openheim.config.layers import lookup
from openheim.permissions.modes import known_mode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from openheim.config.load import LoadedConfig
    from openheim.gates import Gate
    from openheim.permissions import Rule

__all__ = ("SessionOptions", "governed", "governed_mode")


@dataclass(slots=True)
class SessionOptions:
    """Options of a session.

    Args:
        asked_gate: the name or object that the gate was asked for by.
        attended: whether a watcher can answer questions. Where none can, the mode settles them.
    """

    gate: Gate
    asked_gate: str | Gate
    allow: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()
    attended: bool = False
    max_iterations: int = 10

    def unmet(
        self,
        *,
        gate: str | Gate | None,
        allow: Sequence[Rule],
        deny: Sequence[Rule],
        attended: bool,
        max_iterations: int | None,
    ) -> list[str]:
        """Names of options that somebody asks for and that are not so here."""
        unmet: Mapping[str, bool] = {
            "gate": gate is not None and gate != self.asked_gate,
            "allow": not set(allow) <= set(self.allow),
            "deny": not set(deny) <= set(self.deny),
            "attended": attended and not self.attended,
            "max_iterations": max_iterations is not None and max_iterations != self.max_iterations,
        }
        return [name for name, is_unmet in unmet.items() if is_unmet]


def governed(loaded: LoadedConfig, asked: Any, *path: str, warn: Callable[[str], None]) -> Any:
    """What was asked for, unless the managed policy sets something else; None if nothing was asked for.

    Args:
        path: the setting, as in ``"permissions", "gate"``.
        warn: told if the policy wins.
    """
    if asked is None or not loaded.is_managed(*path):
        return asked
    value = lookup(loaded.managed, path)
    if asked != value:
        shown = asked if isinstance(asked, str | int) else type(asked).__name__
        warn(f"{'.'.join(path)} is {value!r} by the managed policy, and not {shown!r} as asked for")
    return value


def governed_mode(loaded: LoadedConfig, asked: str, warn: Callable[[str], None]) -> str:
    """The mode asked for, unless the managed policy sets another. Raises :class:`ConfigError` for an unknown one."""
    mode = known_mode(asked)
    if not loaded.is_managed("permissions", "mode"):
        return mode
    managed = known_mode(loaded.config.permissions.mode)
    if mode != managed:
        warn(f"permissions.mode is {managed!r} by the managed policy, and not {mode!r} as asked for")
    return managed
