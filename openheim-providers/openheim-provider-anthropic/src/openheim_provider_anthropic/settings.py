"""The keys of a ``[providers.NAME]`` entry that are this plugin's own."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

__all__ = ("Settings",)

#: What openheim itself writes into every request.
_RESERVED = frozenset(("messages", "model", "stream", "system", "tools"))


class Settings(BaseModel):
    """Settings of kind ``anthropic``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cache: bool | Literal["5m", "1h"] = Field(
        default=True,
        description="Whether prompts are marked for the service's cache, and how long it keeps them: 5m if true.",
    )
    # May hold keys, so they are not shown.
    extra_headers: dict[str, str] = Field(default_factory=dict, repr=False, description="Headers of every request.")
    extra_body: dict[str, Any] = Field(default_factory=dict, description="Fields of every request for a reply.")
    server_tools: tuple[dict[str, Any], ...] = Field(
        default=(), description="Tools that the service runs itself, each with its type and name, such as web search."
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

    @field_validator("server_tools")
    @classmethod
    def _with_type_and_name(cls, tools: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
        for tool in tools:
            if not all(isinstance(tool.get(key), str) and tool[key] for key in ("type", "name")):
                raise ValueError('each needs a type and a name: { type = "web_search_20250305", name = "web_search" }')
        return tools
