"""The sandbox around commands: where they may write, what they do not see, and whether they have a network.

There are two: ``bwrap`` (bubblewrap: a view of the file system of its own, and no sight of other processes) and
``landlock`` (rules of the Linux kernel, with nothing to install). What each keeps from commands, and what it does not,
is in ``docs/how-to/run-commands-safely.md``.
"""

from __future__ import annotations

from openheim_tools_shell.sandbox.choice import Ability, Confinement, Mode, abilities, choose, confine
from openheim_tools_shell.sandbox.layout import Layout

__all__ = ("Ability", "Confinement", "Layout", "Mode", "abilities", "choose", "confine")
