"""A turn for tests of tools."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from openheim.files import Files
    from openheim.tools import Turn

__all__ = ("FakeTurn",)


class FakeTurn:
    """A :class:`~openheim.tools.Turn` whose boundary is one directory.

    Args:
        root: the boundary; tests give their ``tmp_path``.
        cwd: where relative paths start, by default ``root``.
        answers: what :meth:`ask` answers, in order; once used up, False, as where nobody can be asked.
        env: environment for child processes, by default just ``PATH``.
        settings: the toolset's section of the settings.
        result_limit_bytes: see :class:`~openheim.tools.Turn`.
        takes_images: whether the model can look at images.

    Attributes:
        progress_texts: what the tool told watchers.
        questions: what it asked.
    """

    def __init__(
        self,
        root: Path,
        *,
        cwd: Path | None = None,
        answers: Iterable[bool] = (),
        env: Mapping[str, str] | None = None,
        settings: Mapping[str, Any] | None = None,
        session_id: str = "00000000-0000-4000-8000-000000000000",
        result_limit_bytes: int = 128 * 1024,
        takes_images: bool = False,
    ) -> None:
        self.roots: tuple[Path, ...] = (root,)
        self.cwd = cwd or root
        self.env: Mapping[str, str] = {"PATH": os.environ.get("PATH", os.defpath)} if env is None else env
        self.settings: Mapping[str, Any] = dict(settings or {})
        self.session_id = session_id
        self.result_limit_bytes = result_limit_bytes
        self.takes_images = takes_images
        self.cancelled = False
        self.progress_texts: list[str] = []
        self.questions: list[str] = []
        self._answers = iter(answers)
        self._files: Files | None = None

    @property
    def files(self) -> Files:
        if self._files is None:
            from openheim.files import Files

            self._files = Files(self.roots[0], self.cwd)
        return self._files

    def cancel(self) -> None:
        """Sets ``cancelled``, as a client's cancellation does."""
        self.cancelled = True

    def progress(self, text: str) -> None:
        self.progress_texts.append(text)

    async def ask(self, question: str) -> bool:
        self.questions.append(question)
        return next(self._answers, False)


if TYPE_CHECKING:

    def type_check(turn: FakeTurn) -> Turn:
        return turn
