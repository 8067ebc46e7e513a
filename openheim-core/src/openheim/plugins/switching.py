"""``openheim plugins enable`` and ``disable``: the lists in the ``[plugins]`` section of the user's config file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openheim._slips import closest
from openheim.errors import ConfigError, PluginNotFoundError, UsageError
from openheim.plugins.catalogue import normalise
from openheim.plugins.policy import matches

if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence
    from pathlib import Path

    from openheim.plugins.catalogue import Candidate, Catalogue

__all__ = ("find", "find_one", "switch")


def find(catalogue: Catalogue, reference: str) -> list[Candidate]:
    """What a person means by a name.

    Raises:
        PluginNotFoundError: nothing installed has that name.
    """
    found = catalogue.matching(reference)
    if not found:
        known = {name for c in catalogue.candidates for name in (c.name, c.dotted, c.distribution)}
        near = closest(reference, sorted(known))
        raise PluginNotFoundError(
            f"no plugin named {reference!r} is installed",
            hint=f"did you mean {near}?" if near else "see openheim plugins list",
        )
    return found


def find_one(catalogue: Catalogue, reference: str) -> tuple[str, list[Candidate]]:
    """As :func:`find`, for a name that has to be clear: the entry that the settings use for it, and what it covers.

    Raises:
        UsageError: plugins of several kinds have that name.
    """
    found = find(catalogue, reference)
    if len({candidate.key for candidate in found}) == 1 and any(c.name == reference for c in found):
        return found[0].dotted, found
    wanted = normalise(reference)
    if all(normalise(candidate.distribution) == wanted for candidate in found):
        return found[0].distribution, found
    if len({candidate.key for candidate in found}) == 1:
        return found[0].dotted, found
    choices = sorted({candidate.dotted for candidate in found})
    raise UsageError(f"{reference!r} names several plugins", hint=f"choose one of {', '.join(choices)}")


def switch(path: Path, catalogue: Catalogue, reference: str, *, on: bool) -> tuple[str, bool]:
    """Switches a plugin, or all plugins of a distribution, on or off in a config file.

    Returns:
        The entry that the settings use for it, and whether the file was changed.

    Raises:
        PluginNotFoundError, UsageError: as :func:`find_one`.
        ConfigError: the file is not valid, or has lists of another type.
    """
    from openheim.config.editing import edit_config

    entry, candidates = find_one(catalogue, reference)

    def change(document: Any) -> None:
        section = document.get("plugins")
        if section is None:
            if on:
                return
            import tomlkit

            section = document["plugins"] = tomlkit.table()
        if not isinstance(section, dict):
            raise ConfigError("[plugins]: must be a table", hint="correct it by hand")
        if on:
            _enable(section, entry, candidates, catalogue)
        else:
            _disable(section, entry, candidates)

    changed = edit_config(path, change, only=(("plugins", "enable"), ("plugins", "disable")))
    return entry, changed


def _disable(section: MutableMapping[str, Any], entry: str, candidates: Sequence[Candidate]) -> None:
    listed = _list(section, "disable")
    if all(any(matches(pattern, candidate) for pattern in listed) for candidate in candidates):
        return
    if "disable" in section:
        section["disable"].append(entry)
    else:
        section["disable"] = [entry]


def _enable(
    section: MutableMapping[str, Any], entry: str, candidates: Sequence[Candidate], catalogue: Catalogue
) -> None:
    # What else an entry that goes covers stays switched off, by a name of its own.
    kept: list[str] = []
    for place, pattern in reversed(list(enumerate(_list(section, "disable")))):
        if any(matches(pattern, candidate) for candidate in candidates):
            del section["disable"][place]
            kept += [c.dotted for c in catalogue.candidates if matches(pattern, c) and c not in candidates]
    for dotted in sorted(set(kept)):
        if dotted not in section["disable"]:
            section["disable"].append(dotted)
    if "enable" in section:
        listed = _list(section, "enable")
        if not all(any(matches(pattern, candidate) for pattern in listed) for candidate in candidates):
            section["enable"].append(entry)


def _list(section: MutableMapping[str, Any], key: str) -> list[str]:
    value = section.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ConfigError(f"[plugins] {key}: must be a list of names", hint="correct it by hand")
    return [str(item) for item in value]
