"""``[tools.shell]``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

__all__ = ("Settings",)

#: A day: whatever takes longer is not waited for by a model.
MAX_SECS = 24 * 3600.0

_Seconds = Annotated[float, Field(gt=0, le=MAX_SECS, allow_inf_nan=False)]
_Path = Annotated[str, StringConstraints(pattern=r"^[^\x00]+$")]
_VariableName = Annotated[str, StringConstraints(pattern=r"^[^=\x00]+$")]


class Settings(BaseModel):
    """How commands are run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    timeout_secs: _Seconds = Field(
        default=120.0, description="Seconds after which a command is ended, unless the call says otherwise."
    )
    max_timeout_secs: _Seconds = Field(
        default=600.0, description="Most seconds that a call may ask for; never less than timeout_secs."
    )
    env_allow: tuple[_VariableName, ...] = Field(
        default=(), description="Variables that commands see although their names or values look like secrets."
    )

    sandbox: Literal["auto", "bwrap", "landlock", "none"] = Field(
        default="auto",
        description="What confines commands: bubblewrap, Landlock, the better of those that work (auto), or nothing. "
        "Where what is named does not work, commands are refused; with auto they run without where neither works.",
    )
    network: bool = Field(default=True, description="Whether commands have a network. Taking it away needs bubblewrap.")
    writable: tuple[_Path, ...] = Field(
        default=(), description="Folders and files beside the work directory that commands in a sandbox may write to."
    )
    hidden: tuple[_Path, ...] = Field(
        default=(), description="Folders and files that commands in a sandbox cannot read, beside openheim's own."
    )

    @property
    def longest_secs(self) -> float:
        """Most seconds that a command may take in the foreground."""
        return max(self.timeout_secs, self.max_timeout_secs)
