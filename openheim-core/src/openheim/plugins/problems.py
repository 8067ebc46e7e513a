"""The errors about plugins, each saying what to do next, and how an exception of a plugin's is put into words."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from openheim.errors import (
    PluginConflictError,
    PluginDisabledError,
    PluginIncompatibleError,
    PluginLoadError,
    PluginNotFoundError,
    said,
)
from openheim.plugins.first_party import distribution_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from openheim.plugins.catalogue import Candidate

__all__ = ("conflict", "describe", "disabled", "incompatible", "load_failed", "not_found", "note_of")

_NOUNS = {
    "providers": "provider",
    "embeddings": "embedding",
    "tools": "toolset",
    "transports": "transport",
    "gates": "gate",
    "plugins": "general plugin",
}

#: Longer messages of exceptions are cut: some libraries put whole documents into them.
_LONGEST_DESCRIPTION = 300


def not_found(kind: str, name: str, installed: Iterable[str]) -> PluginNotFoundError:
    from openheim._slips import closest
    from openheim.config.masking import without_keys

    known = sorted(installed)
    noun = _NOUNS[kind] if kind == "plugins" else f"{_NOUNS[kind]} plugin"
    distribution = distribution_of(kind, name)
    if distribution is not None:
        hint = f"try: pip install {distribution}"
    elif near := closest(name, known):
        hint = f"did you mean {near}?"
    else:
        hint = "see openheim plugins list"
    return PluginNotFoundError(
        f"No {noun} named {without_keys(name)!r} is installed (installed: {', '.join(known) or 'none'})", hint=hint
    )


def conflict(kind: str, name: str, rivals: Sequence[Candidate]) -> PluginConflictError:
    *others, last = (rival.origin for rival in rivals)
    return PluginConflictError(
        f"{_NOUNS[kind].capitalize()} {name!r} is offered by {', '.join(others)} and {last}",
        hint=f'choose one: [plugins.prefer] "{kind}.{name}" = "…"',
    )


def disabled(candidate: Candidate, reason: str) -> PluginDisabledError:
    return PluginDisabledError(
        f"Plugin {candidate.label} ({candidate.origin}) is disabled: {reason}",
        hint=f"openheim plugins enable {candidate.dotted}" if "[plugins]" in reason else "change that to use it",
    )


def incompatible(candidate: Candidate, reason: str) -> PluginIncompatibleError:
    return PluginIncompatibleError(
        f"Plugin {candidate.label} ({candidate.origin}) does not fit this openheim-core: it {reason}",
        hint=f"install a version of {candidate.distribution} that fits, or upgrade openheim-core",
    )


def load_failed(label: str, origin: str, problem: BaseException | str, *, doing: str = "be loaded") -> PluginLoadError:
    """An error about a plugin that is there and does not work.

    Args:
        label: the plugin, ``tools:web``.
        origin: its distribution and version.
        problem: what it raised, or what is wrong with it.
        doing: what could not be done with it.
    """
    if isinstance(problem, str):
        return PluginLoadError(f"Plugin {label} ({origin}) could not {doing}: {problem}", hint="tell its author")
    return PluginLoadError(
        f"Plugin {label} ({origin}) could not {doing}: {describe(problem)}", hint="run with --debug for the traceback"
    )


def describe(err: BaseException) -> str:
    """Type and message of an exception, as one line of bounded length."""
    if isinstance(err, ModuleNotFoundError) and err.name:
        return f"{type(err).__name__}: {err.name}"
    text = " ".join(said(err).split())
    if len(text) > _LONGEST_DESCRIPTION:
        text = text[:_LONGEST_DESCRIPTION] + "…"
    return f"{type(err).__name__}: {text}" if text else type(err).__name__


def note_of(err: PluginLoadError) -> str:
    """What the listing says of a plugin that failed: the cause, and where it arose outside of openheim."""
    cause = err.__cause__
    if cause is None:
        return err.message.partition(": ")[2]
    place = _place_of(cause)
    return f"{describe(cause)} ({place})" if place else describe(cause)


def _place_of(err: BaseException) -> str:
    """File and line of the first frame that is neither ours nor the import system's, or ``""``."""
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
    frame = err.__traceback__
    while frame is not None:
        file = frame.tb_frame.f_code.co_filename
        # The libraries that load for us are told by their folders: importing them to ask costs more.
        *folders, module = file.replace(os.sep, "/").split("/")
        if not file.startswith((own, "<frozen")) and not {"importlib", "stevedore", "pluggy"}.intersection(folders):
            return f"{'/'.join([*folders[-1:], module])}:{frame.tb_lineno}"
        frame = frame.tb_next
    return ""
