"""What is installed: one scan of the distributions' metadata, which imports no plugin.

Only distributions with an ``openheim.`` group in their ``entry_points.txt`` are read further; reading the metadata of
everything is the one thing that makes discovery slow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from importlib.metadata import Distribution, EntryPoint, distributions
from typing import TYPE_CHECKING

from openheim.plugins.first_party import FIRST_PARTY_DISTRIBUTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ("KINDS", "Candidate", "Catalogue", "normalise", "plugin_key", "scan")

#: The kinds of plugin. Each is the entry-point group ``openheim.KIND``.
KINDS = ("providers", "embeddings", "tools", "transports", "gates", "plugins")

_PREFIX = "openheim."


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """One entry point of an installed distribution.

    Args:
        kind: one of :data:`KINDS`.
        name: the entry point's name, which is the plugin's public name.
        value: the entry point's value, ``module`` or ``module:object``.
        distribution: name of the distribution, as it spells itself.
        location: the directory that the distribution is installed in.
        requires: its requirements, as in its metadata.
        summary: its one-line description.
        metadata: the distribution itself, or None for a candidate made by hand.
    """

    kind: str
    name: str
    value: str
    distribution: str
    version: str
    location: str = ""
    requires: tuple[str, ...] = ()
    summary: str = ""
    metadata: Distribution | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.name

    @property
    def entry_point(self) -> EntryPoint:
        return EntryPoint(self.name, self.value, _PREFIX + self.kind)

    @property
    def dotted(self) -> str:
        """The form that settings use, ``tools.web``."""
        return f"{self.kind}.{self.name}"

    @property
    def label(self) -> str:
        """The form that messages and pluggy use, ``tools:web``."""
        return f"{self.kind}:{self.name}"

    @property
    def origin(self) -> str:
        """Distribution and version, for messages. What is given by a program has no version and may have brackets."""
        return f"{self.distribution} {self.version}".strip(" ()")

    @property
    def first_party(self) -> bool:
        return normalise(self.distribution) in FIRST_PARTY_DISTRIBUTIONS

    @property
    def editable(self) -> str | None:
        """The source folder of an editable install, or None. Read from disk each time."""
        text = _read(self.metadata, "direct_url.json")
        if text is None:
            return None
        import json
        from urllib.parse import unquote, urlsplit

        try:
            origin = json.loads(text)
            if not origin["dir_info"]["editable"]:
                return None
            return unquote(urlsplit(origin["url"]).path)
        except (ValueError, KeyError, TypeError):
            return None


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Everything installed, sorted by kind, name and distribution.

    Args:
        candidates: in any order.
        problems: one line per distribution that claims to have plugins and could not be read.
    """

    candidates: tuple[Candidate, ...] = ()
    problems: tuple[str, ...] = ()
    _by_key: dict[tuple[str, str], list[Candidate]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ordered = sorted(self.candidates, key=lambda c: (KINDS.index(c.kind), c.name, normalise(c.distribution)))
        by_key: dict[tuple[str, str], list[Candidate]] = {}
        for candidate in ordered:
            by_key.setdefault(candidate.key, []).append(candidate)
        object.__setattr__(self, "candidates", tuple(ordered))
        object.__setattr__(self, "_by_key", by_key)

    def named(self, kind: str, name: str) -> Sequence[Candidate]:
        """Those that offer this name: none, one, or rivals."""
        return self._by_key.get((kind, name), ())

    def names(self, kind: str) -> list[str]:
        """The names installed of one kind, sorted."""
        return [name for found, name in self._by_key if found == kind]

    def groups(self) -> Iterator[Sequence[Candidate]]:
        """The candidates by kind and name: rivals together."""
        yield from self._by_key.values()

    def matching(self, reference: str) -> list[Candidate]:
        """Those that a person may mean: ``kind.name``, ``kind:name``, a bare name, or a distribution."""
        key = plugin_key(reference)
        if key is not None:
            return list(self.named(*key))
        wanted = normalise(reference)
        return [c for c in self.candidates if c.name == reference or normalise(c.distribution) == wanted]


def plugin_key(text: str) -> tuple[str, str] | None:
    """Kind and name that ``tools.web`` means, or None for what has no kind: a bare name, or a distribution's.

    ``tools:web`` is understood too: messages write it, and people copy from messages.
    """
    kind, dot, name = text.replace(":", ".", 1).partition(".")
    return (kind, name) if dot and kind in KINDS else None


def normalise(name: str) -> str:
    """A distribution name in the form in which names are compared (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def scan(path: list[str] | None = None) -> Catalogue:
    """Reads what is installed.

    A distribution that is seen twice counts once: the first on the path, which is the one that imports find.

    Args:
        path: directories to look in; ``sys.path`` if None.
    """
    candidates: list[Candidate] = []
    problems: list[str] = []
    seen: set[str] = set()
    for metadata in distributions() if path is None else distributions(path=path):
        declared = _read(metadata, "entry_points.txt")
        if declared is None or _PREFIX not in declared:
            continue
        try:
            found = _candidates(metadata)
        except Exception as err:  # whatever broken metadata makes the reader raise, the others still count
            problems.append(
                f"a distribution in {metadata.locate_file('')} could not be read: {type(err).__name__}: {err}"
            )
            continue
        if not found or (own := normalise(found[0].distribution)) in seen:
            continue
        seen.add(own)
        candidates += [c for c in found if c.kind in KINDS]
        problems += [
            f"{c.origin} has plugins of an unknown kind: {_PREFIX}{c.kind}" for c in found if c.kind not in KINDS
        ]
    return Catalogue(tuple(candidates), tuple(dict.fromkeys(problems)))


def _candidates(metadata: Distribution) -> list[Candidate]:
    text = _read(metadata, "METADATA") or _read(metadata, "PKG-INFO")
    if text is None:
        raise ValueError("it has no METADATA")
    name = version = summary = ""
    requires: list[str] = []
    for header, value in _headers(text):
        if header == "name":
            name = value
        elif header == "version":
            version = value
        elif header == "summary":
            summary = value
        elif header == "requires-dist":
            requires.append(value)
    if not name or not version:
        raise ValueError("its METADATA names no distribution and version")
    location = str(metadata.locate_file(""))
    found: dict[tuple[str, str], Candidate] = {}
    for entry_point in metadata.entry_points:
        if not entry_point.group.startswith(_PREFIX):
            continue
        kind = entry_point.group.removeprefix(_PREFIX)
        found.setdefault(
            (kind, entry_point.name),
            Candidate(
                kind=kind,
                name=entry_point.name,
                value=entry_point.value,
                distribution=name,
                version=version,
                location=location,
                requires=tuple(requires),
                summary=summary,
                metadata=metadata,
            ),
        )
    return list(found.values())


def _headers(text: str) -> Iterator[tuple[str, str]]:
    """The headers of a metadata file, names in lower case. By hand: the email package takes longer than all else."""
    name = value = ""
    for line in text.splitlines():
        if not line.strip():
            break
        if line[0] in " \t":
            value += " " + line.strip()
            continue
        if name:
            yield name, value
        header, _, rest = line.partition(":")
        name, value = header.strip().lower(), rest.strip()
    if name:
        yield name, value


def _read(metadata: Distribution | None, file: str) -> str | None:
    if metadata is None:
        return None
    try:
        return metadata.read_text(file)
    except (OSError, ValueError):
        # Gone meanwhile, not to be read, or not UTF-8.
        return None
