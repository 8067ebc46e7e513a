"""The keys of a ``[providers.NAME]`` entry that are this plugin's own."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import Field, field_validator

from openheim import wire_call_id
from openheim.service_settings import ServiceSettings

__all__ = ("Settings",)


class Settings(ServiceSettings):
    """Settings of kinds ``openai`` and ``openai_compatible``. What is left out follows from kind and address."""

    #: What openheim itself writes into every request.
    reserved = frozenset(("input", "instructions", "messages", "model", "stream", "stream_options", "tools"))

    wire: Literal["chat", "responses"] | None = Field(
        default=None, description="Chat Completions or Responses; left out, kind openai decides by the model."
    )
    preset: (
        Literal[
            "none",
            "openai",
            "azure",
            "openrouter",
            "deepseek",
            "mistral",
            "groq",
            "ollama",
            "vllm",
            "lmstudio",
            "llamacpp",
        ]
        | None
    ) = Field(default=None, description="The service whose quirks are known; left out, the address tells.")
    stream_options: bool | None = Field(
        default=None, description="Whether usage is asked for in streams; left out, it is until the server refuses it."
    )
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = Field(
        default=None, description="Field that carries the cap on replies; left out, the kind decides."
    )
    strict_roles: bool | None = Field(
        default=None, description="Neighbours of one role become one message, and user and assistant take turns."
    )
    echo_reasoning: str | None = Field(
        default=None,
        description="Field in which stored reasoning goes back; true for reasoning_content, false for none.",
    )
    tool_id_pattern: str | None = Field(
        default=None, description="Regular expression that ids of tool calls have to match; others are replaced."
    )
    response_format: Literal["json_schema", "json_object"] | None = Field(
        default=None, description="How Chat is told that a reply has to match a schema."
    )
    reasoning: bool | None = Field(
        default=None, description="Whether models think first; left out, their names tell. For the Responses wire."
    )
    reasoning_summary: Literal["auto", "concise", "detailed", "none"] | None = Field(
        default=None, description="Which summary of thoughts is asked for; left out, auto until it is refused."
    )
    reasoning_details: bool | None = Field(
        default=None, description="Whether reasoning_details of replies go back with them. For the Chat wire."
    )
    tools: bool | None = Field(
        default=None,
        description="False where requests with tools are refused: the model answers with text alone.",
    )
    images: bool | None = Field(
        default=None,
        description="Whether models can look at images that tools find; left out, OpenAI's own can, by their names.",
    )
    api_version: str | None = Field(default=None, description="Sent as api-version with every request, for Azure.")
    dimensions: int | None = Field(default=None, ge=1, description="Numbers in a vector, for embeddings.")

    @field_validator("tool_id_pattern")
    @classmethod
    def _ids_can_match(cls, pattern: str | None) -> str | None:
        if pattern:
            try:
                wire_call_id("an id that needs replacing", pattern)
            except re.error as err:
                raise ValueError(f"is no regular expression: {err}") from err
        return pattern

    @field_validator("echo_reasoning", mode="before")
    @classmethod
    def _the_usual_field(cls, field: Any) -> Any:
        return {True: "reasoning_content", False: ""}[field] if isinstance(field, bool) else field

    @field_validator("echo_reasoning")
    @classmethod
    def _a_field_of_its_own(cls, field: str | None) -> str | None:
        if field in ("role", "content", "tool_calls"):
            raise ValueError(f"{field} is a field of its own")
        return field

    @field_validator("api_version")
    @classmethod
    def _fits_into_an_address(cls, version: str | None) -> str | None:
        if version is not None and not re.fullmatch(r"[A-Za-z0-9._-]+", version):
            raise ValueError("is a date such as 2024-10-21, or a word such as preview")
        return version
