"""The system text: who the agent is, what it knows, and where it works."""

from __future__ import annotations

from openheim.prompt.assembly import DEFAULT_IDENTITY, read_identity, system_text
from openheim.prompt.builder import PromptBuilder
from openheim.prompt.skills import SkillLibrary, merged_skills
from openheim.prompt.texts import TextCache

__all__ = (
    "DEFAULT_IDENTITY",
    "PromptBuilder",
    "SkillLibrary",
    "TextCache",
    "merged_skills",
    "read_identity",
    "system_text",
)
