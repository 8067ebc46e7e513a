"""The keys of a ``[providers.NAME]`` entry that are this plugin's own."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

__all__ = ("Settings",)

#: What openheim itself writes into every request.
_RESERVED = frozenset(("messages", "model", "stream", "stream_options", "tools"))


class Settings(BaseModel):
    """Settings of kinds ``openai`` and ``openai_compatible``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    stream_options: bool | None = Field(
        default=None, description="Whether usage is asked for in streams; left out, it is until the server refuses it."
    )
    # May hold keys, so they are not shown.
    extra_headers: dict[str, str] = Field(default_factory=dict, repr=False, description="Headers of every request.")
    extra_body: dict[str, Any] = Field(default_factory=dict, description="Fields of every request for a reply.")
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = Field(
        default=None, description="Field that carries the cap on replies; left out, the kind decides."
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
        return body
