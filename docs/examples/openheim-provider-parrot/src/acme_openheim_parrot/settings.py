from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class ParrotSettings(BaseModel):
    """The keys of a ``[providers.NAME]`` entry that openheim itself does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    times: int = Field(default=1, ge=1, le=10, description="How often the parrot repeats what it hears.")
