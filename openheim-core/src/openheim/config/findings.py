"""What is to be said about settings: where, which key, what, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openheim.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("Finding", "SettingError")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong or worth knowing. It never quotes a value: that may be a secret.

    Args:
        message: what it is, without the place.
        key: the setting concerned, dotted, or ``""``.
        file, line: where it stands, as far as that is known.
        source: what else it comes from: a variable, or the flags.
        hint: what to do next, or ``""``.
    """

    message: str
    key: str = ""
    file: Path | None = None
    line: int | None = None
    source: str = ""
    hint: str = ""

    @property
    def place(self) -> str:
        if self.file is not None:
            return f"{self.file}, line {self.line}" if self.line is not None else str(self.file)
        return self.source

    @property
    def text(self) -> str:
        """Place and message, without the hint."""
        return f"{self.place}: {self.message}" if self.place else self.message

    def __str__(self) -> str:
        return f"{self.text}; {self.hint}" if self.hint else self.text

    def to_dict(self) -> dict[str, Any]:
        """An element of ``openheim config check --json``."""
        return {
            "file": str(self.file) if self.file is not None else None,
            "line": self.line,
            "key": self.key or None,
            "message": self.message if self.file is not None or not self.source else f"{self.source}: {self.message}",
            "hint": self.hint,
        }


class SettingError(ConfigError):
    """A setting is wrong; ``finding`` says where."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.text, hint=finding.hint)
        self.finding = finding
