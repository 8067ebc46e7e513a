"""Which sandbox is used."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from openheim import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openheim_tools_shell.sandbox.layout import Layout

__all__ = ("Ability", "Confinement", "Kind", "Mode", "abilities", "choose", "confine")

#: What can be asked for. ``auto`` is the best that works here, which may be none.
Mode: TypeAlias = Literal["auto", "bwrap", "landlock", "none"]

#: What there is.
Kind: TypeAlias = Literal["bwrap", "landlock", "none"]

_BY_PREFERENCE: tuple[Literal["bwrap", "landlock"], ...] = ("bwrap", "landlock")

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
        around_supervisor, around_command: what to put before the command line of the supervisor, or of the command.
        environment: variables that the command needs in addition.
        notice: what the user should know once a session; ``""`` for nothing.
    """

    kind: Kind
    around_supervisor: tuple[str, ...] = ()
    around_command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    notice: str = ""


def abilities(*, network: bool, writable: Sequence[str] = ()) -> dict[Literal["bwrap", "landlock"], Ability]:
    """What works here, best first. It may block for a moment when it is first called.

    Args:
        network: whether commands are to have one.
        writable: folders that commands can write to, where no program is taken from.
    """
    from openheim_tools_shell.sandbox import bwrap, landlock

    program = bwrap.find_bwrap(tuple(writable))
    no_bwrap, no_landlock = bwrap.why_not(program, network), landlock.why_not()
    if not no_landlock and not network:
        no_landlock = landlock.NO_NETWORK_REASON
    return {
        "bwrap": Ability(not no_bwrap, no_bwrap or f"{program} works"),
        "landlock": Ability(not no_landlock, no_landlock or f"version {landlock.version()} of this kernel's interface"),
    }


def choose(mode: Mode, *, network: bool, writable: Sequence[str] = ()) -> tuple[Kind, str]:
    """What is used, and what the user should know of that, ``""`` for nothing. It may block as :func:`abilities` does.

    ``auto`` takes bubblewrap, else Landlock, else nothing. But a command that is to have no network is not run with
    one, whatever the mode. The other arguments are those of :func:`abilities`.

    Raises:
        ToolError: what is asked for does not work here.
    """
    if mode == "none":
        if network:
            return "none", ""
        raise ToolError(
            "the settings take the network from commands, which needs a sandbox, and ask for none",
            hint='set [tools.shell] sandbox = "bwrap", or network = true',
        )
    found = abilities(network=network, writable=writable)
    for kind in _BY_PREFERENCE:
        if mode in ("auto", kind) and found[kind].works:
            return kind, ""
    if not network:
        raise ToolError(
            f"the settings take the network from commands, which needs bubblewrap: {found['bwrap'].detail}"
            if mode != "landlock"
            else f"the sandbox landlock cannot be used: {found['landlock'].detail}",
            hint='set [tools.shell] sandbox = "bwrap" with bubblewrap installed, or network = true',
        )
    if mode != "auto":
        raise ToolError(
            f"the sandbox {mode} that the settings ask for cannot be used: {found[mode].detail}", hint=_HINT
        )
    reasons = "; ".join(f"{kind}: {ability.detail}" for kind, ability in found.items())
    return "none", f"commands run without a sandbox: none works here ({reasons})"


def confine(kind: Kind, layout: Layout) -> Confinement:
    """How to start a command in a sandbox that was chosen. Makes the private folders.

    Raises:
        ToolError: they cannot be made, or there is no work directory.
    """
    if kind == "none":
        return Confinement("none")
    layout.prepare()
    return _bubblewrap(layout) if kind == "bwrap" else _landlock(layout)


def _bubblewrap(layout: Layout) -> Confinement:
    from openheim_tools_shell.sandbox import bwrap

    program = bwrap.find_bwrap(tuple(layout.writable_places()))
    if program is None:  # It was tried, but with other places to write to.
        raise ToolError("the sandbox bwrap cannot be used: the program bwrap lies where commands can write", hint=_HINT)
    return Confinement("bwrap", around_supervisor=bwrap.prefix(program, layout), environment=bwrap.environment(layout))


def _landlock(layout: Layout) -> Confinement:
    from openheim_tools_shell.sandbox import landlock

    return Confinement("landlock", around_command=landlock.prefix(layout), environment=landlock.environment(layout))
