"""Which sandbox is used."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from openheim import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openheim_tools_shell.sandbox.layout import Layout

__all__ = ("Ability", "Confinement", "Mode", "abilities", "confine")

#: What can be asked for. ``auto`` is the best that works here, which may be none.
Mode: TypeAlias = Literal["auto", "bwrap", "landlock", "none"]

_HINT = "`openheim doctor` says which sandboxes work here; [tools.shell] sandbox chooses"


@dataclass(frozen=True, slots=True)
class Ability:
    """Whether a sandbox works on this machine; ``detail`` says its version, or why not."""

    works: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Confinement:
    """How to start a command so that it is confined.

    Args:
        kind: what confines it.
        around_supervisor, around_command: what to put before the command line of the supervisor, and that of the command.
        environment: variables that the command needs in addition.
        notice: what the user should know once a session; ``""`` for nothing.
    """

    kind: Literal["bwrap", "landlock", "none"]
    around_supervisor: tuple[str, ...] = ()
    around_command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    notice: str = ""


def abilities(*, network: bool) -> dict[str, Ability]:
    """What works here, best first. It may block for a moment when it is first called.

    Args:
        network: whether commands are to have one.
    """
    from openheim_tools_shell.sandbox import bwrap, landlock

    program = bwrap.find_bwrap()
    no_bwrap, no_landlock = bwrap.why_not(program, network), landlock.why_not()
    if not no_landlock and not network:
        no_landlock = landlock.NO_NETWORK_REASON
    return {
        "bwrap": Ability(not no_bwrap, no_bwrap or f"{program} works"),
        "landlock": Ability(not no_landlock, no_landlock or f"version {landlock.version()} of this kernel's interface"),
    }


def confine(mode: Mode, layout: Layout) -> Confinement:
    """How to start a command. It may block for a moment when it is first called, and makes the private folders.

    ``auto`` takes bubblewrap, else Landlock, else nothing, which the notice says. But a network is never left to a command
    that is to have none: that needs bubblewrap, whatever the mode.

    Raises:
        ToolError: what is asked for does not work here.
    """
    if mode == "none" and layout.network:
        return Confinement("none")
    found = abilities(network=layout.network)
    if mode == "none" or (mode == "auto" and not layout.network and not found["bwrap"].works):
        if mode == "none":
            raise ToolError(
                "the settings take the network from commands and ask for no sandbox, which it takes to do that",
                hint='set [tools.shell] sandbox = "bwrap", or network = true',
            )
        raise ToolError(
            f"the settings take the network from commands, which needs bubblewrap: {found['bwrap'].detail}",
            hint="install it, or set [tools.shell] network = true",
        )
    wanted = [kind for kind, ability in found.items() if ability.works and mode in ("auto", kind)]
    if not wanted and mode == "auto":
        reasons = "; ".join(f"{kind}: {ability.detail}" for kind, ability in found.items())
        return Confinement("none", notice=f"commands run without a sandbox: none works here ({reasons})")
    if not wanted:
        instead = '; sandbox = "bwrap" does' if mode == "landlock" and not layout.network else ""
        raise ToolError(
            f"the sandbox {mode} that the settings ask for cannot be used: {found[mode].detail}{instead}", hint=_HINT
        )
    layout.prepare()
    return _bubblewrap(layout) if wanted[0] == "bwrap" else _landlock(layout)


def _bubblewrap(layout: Layout) -> Confinement:
    from openheim_tools_shell.sandbox import bwrap

    program = bwrap.find_bwrap()
    assert program is not None  # It was tried.
    return Confinement(
        "bwrap", around_supervisor=bwrap.prefix(program, layout), environment=bwrap.environment(layout)
    )


def _landlock(layout: Layout) -> Confinement:
    from openheim_tools_shell.sandbox import landlock

    return Confinement(
        "landlock", around_command=landlock.prefix(layout), environment=landlock.environment(layout)
    )
