"""Finding the lines that match a pattern, with an engine that no pattern can hang."""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from openheim import ToolError
from openheim_tools_fs.needed import required_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ("Engine", "Matcher", "PatternTooSlowError", "TextTooSlowError", "bad_pattern", "open_matcher")


#: Bytes that RE2 is handed at once, times the size of the pattern's program: some tenths of a second at worst. Its time
#: is in proportion to both, and nothing can end it before it is done.
MAX_WORK = 100_000_000
#: Of that text at least, whatever the pattern.
MIN_TEXT = 16 * 1024


class TextTooSlowError(Exception):
    """The pattern takes too long with this text; with others it may do."""


class PatternTooSlowError(Exception):
    """The pattern takes too long with one text after the other, and no more is to be tried."""


class Engine(Protocol):
    """What matches a pattern.

    Attributes:
        seconds: time that has gone into matching, if that may be much.
    """

    seconds: float

    def hits(self, block: bytes) -> Iterable[int]:
        """The offset of the first match in each line that has one. A match never spans lines.

        Raises:
            TextTooSlowError, PatternTooSlowError: only from the fallback.
        """
        ...


class Matcher:
    """A pattern, ready to be used.

    Attributes:
        needed: ASCII text that every match holds, or ``b""``. Most files do not hold it, and looking for it is much
            faster than matching.
    """

    def __init__(self, engine: Engine, needed: bytes) -> None:
        self.needed = needed
        self._engine = engine

    @property
    def seconds(self) -> float:
        """As that of :class:`Engine`."""
        return self._engine.seconds

    def hits(self, block: bytes) -> Iterable[int]:
        """As :meth:`Engine.hits`."""
        return self._engine.hits(block)


@contextmanager
def open_matcher(pattern: str, *, ignore_case: bool, check: Callable[[], None]) -> Iterator[Matcher]:
    """A matcher for the block: RE2 where it is installed, else Python's ``re`` in a process that is ended if it hangs.

    Args:
        check: called now and then by what may take long; what it raises ends the matching.

    Raises:
        ToolError: the pattern is none.
    """
    try:
        pattern.encode()
    except UnicodeEncodeError as err:
        raise ToolError("the pattern holds half of a surrogate pair, which no file has") from err
    needed = b"" if ignore_case else required_text(pattern)
    re2 = _re2_module()
    if re2 is not None:
        yield Matcher(_Re2(re2, pattern, ignore_case, check), needed)
        return
    from openheim_tools_fs.re_process import ReProcess

    process = ReProcess(pattern, ignore_case, needed, check)
    try:
        yield Matcher(process, needed)
    finally:
        process.close()


def bad_pattern(reason: str) -> ToolError:
    return ToolError(f"the pattern is no valid regular expression: {reason}")


def _re2_module() -> Any:
    """google-re2, or None without it."""
    try:
        module = import_module("re2")
    except ImportError:
        return None
    # Another distribution offers a module of that name, with another interface.
    return module if hasattr(module, "Options") else None


class _Re2:
    """RE2: time in proportion to the text, and to the pattern with its counted repetitions written out."""

    seconds = 0.0

    def __init__(self, re2: Any, pattern: str, ignore_case: bool, check: Callable[[], None]) -> None:
        self._check = check
        options = re2.Options()
        options.case_sensitive = not ignore_case
        options.never_nl = True
        options.log_errors = False
        try:
            self._pattern = re2.compile(f"(?m){pattern}", options)
        except re2.error as err:
            reason = err.args[0]
            said = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
            said = said.replace(f"(?m){pattern}", pattern)
            if "perl operator" in said:
                said += "; RE2 has no look-around and no back-references"
            raise bad_pattern(said) from err
        self._most = max(MIN_TEXT, MAX_WORK // max(1, self._pattern.programsize))

    def hits(self, block: bytes) -> Iterator[int]:
        start = 0
        for part_start, end in self._parts(block):
            start = max(start, part_start)
            while start < end and (match := self._pattern.search(block, start, end)) is not None:
                place = match.start()
                if place == end and block[end - 1 : end] == b"\n":
                    break  # Behind the last line, where there is no line.
                yield place
                start = block.find(b"\n", place) + 1
                if not start:
                    return

    def _parts(self, block: bytes) -> Iterator[tuple[int, int]]:
        """Where the parts of a block begin and end: at line ends, but for lines that are too long to be one."""
        start = 0
        while start < len(block):
            end = start + self._most
            if end < len(block):
                end = block.rfind(b"\n", start, end) + 1 or end
                self._check()
            else:
                end = len(block)
            yield start, end
            start = end
