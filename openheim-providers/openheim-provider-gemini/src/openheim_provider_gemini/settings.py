"""The keys of a ``[providers.NAME]`` entry that are this plugin's own."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator

from openheim.service_settings import ServiceSettings

__all__ = ("Settings",)


class Settings(ServiceSettings):
    """Settings of kind ``gemini``."""

    #: What openheim itself writes into every request. The service takes names in either form, but not one in both.
    reserved = frozenset(("contents", "systemInstruction", "system_instruction", "tools"))

    extra_body: dict[str, Any] = Field(
        default_factory=dict,
        description="Fields of every request for a reply; those of generationConfig are added to it.",
    )

    @field_validator("extra_body")
    @classmethod
    def _one_table_of_generation(cls, body: dict[str, Any]) -> dict[str, Any]:
        if "generation_config" in body:
            raise ValueError("generation_config is written generationConfig here")
        if not isinstance(body.get("generationConfig", {}), dict):
            raise ValueError("generationConfig has to be a table")
        return body
