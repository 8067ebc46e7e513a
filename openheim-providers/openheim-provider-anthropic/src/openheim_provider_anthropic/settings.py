"""The keys of a ``[providers.NAME]`` entry that are this plugin's own."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator

from openheim.service_settings import ServiceSettings

__all__ = ("Settings",)


class Settings(ServiceSettings):
    """Settings of kind ``anthropic``."""

    #: What openheim itself writes into every request.
    reserved = frozenset(("messages", "model", "stream", "system", "tools"))

    cache: bool | Literal["5m", "1h"] = Field(
        default=True,
        description="Whether prompts are marked for the service's cache, and how long it keeps them: 5m if true.",
    )
    server_tools: tuple[dict[str, Any], ...] = Field(
        default=(), description="Tools that the service runs itself, each with its type and name, such as web search."
    )

    @field_validator("server_tools")
    @classmethod
    def _with_type_and_name(cls, tools: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
        for tool in tools:
            if not all(isinstance(tool.get(key), str) and tool[key] for key in ("type", "name")):
                raise ValueError('each needs a type and a name: { type = "web_search_20250305", name = "web_search" }')
        return tools
