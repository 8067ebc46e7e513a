"""The keys of a ``[providers.NAME]`` entry that are this plugin's own."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

__all__ = ("Settings",)

#: What openheim itself writes into every request. The service takes names in either form, but not the same one twice.
_RESERVED = frozenset(("contents", "systemInstruction", "system_instruction", "tools"))


class Settings(BaseModel):
    """Settings of kind ``gemini``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    # May hold keys, so they are not shown.
    extra_headers: dict[str, str] = Field(default_factory=dict, repr=False, description="Headers of every request.")
    extra_body: dict[str, Any] = Field(
        default_factory=dict,
        description="Fields of every request for a reply; those of generationConfig are added to it.",
    )

    @field_validator("extra_headers")
    @classmethod
    def _lower_case_names(cls, headers: dict[str, str]) -> dict[str, str]:
        return {name.lower(): value for name, value in headers.items()}

    @field_validator("extra_body")
    @classmethod
    def _nothing_reserved(cls, body: dict[str, Any]) -> dict[str, Any]:
        if reserved := sorted(_RESERVED & body.keys()):
            raise ValueError(f"{', '.join(reserved)} cannot be set here, since openheim writes it itself")
        if "generation_config" in body:
            raise ValueError("generation_config is written generationConfig here")
        if not isinstance(body.get("generationConfig", {}), dict):
            raise ValueError("generationConfig has to be a table")
        return body
