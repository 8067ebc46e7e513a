"""Whether a plugin accepts the running core, told from its metadata before it is imported."""

from __future__ import annotations

import re

from openheim import __version__
from openheim.plugins.catalogue import Candidate, normalise

__all__ = ("rejecting_requirement",)

_CORE = "openheim-core"
_REQUIREMENT = re.compile(
    r"\s*(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^]]*\])?\s*(?P<versions>[^;]*?)\s*(?:;(?P<marker>.*))?"
)


def rejecting_requirement(candidate: Candidate, core_version: str = __version__) -> str | None:
    """The requirement of the candidate on openheim-core that the running version does not meet, or None.

    First-party distributions are released together, so one of the running version is not looked at further. For the
    others ``packaging`` is imported, and of it only what is needed.
    """
    if candidate.first_party and candidate.version == core_version:
        return None
    for requirement in candidate.requires:
        # Nearly every requirement is on something else.
        if not requirement[:8].lower().startswith("openheim"):
            continue
        parts = _REQUIREMENT.fullmatch(requirement)
        if parts is not None and normalise(parts["name"]) == _CORE and not _accepts(parts, core_version):
            return requirement.partition(";")[0].strip()
    return None


def _accepts(parts: re.Match[str], core_version: str) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    if parts["marker"]:
        from packaging.markers import InvalidMarker, Marker

        try:
            if not Marker(parts["marker"].strip()).evaluate({"extra": ""}):
                return True
        except InvalidMarker:
            return False
    try:
        # A pre-release of the core counts as what it is: the ranges that plugins write are not about pre-releases.
        return SpecifierSet(parts["versions"].strip("() ")).contains(core_version, prereleases=True)
    except InvalidSpecifier:
        # Some requirements are addresses (``openheim-core @ file:///…``): they pin no version.
        return parts["versions"].lstrip().startswith("@")
