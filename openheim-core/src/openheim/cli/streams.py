"""The process's standard streams, made so that printing cannot fail in odd ways.

Standard error is for a person: whether it can be written must change neither the exit code nor the answer on standard
output. Standard output is what scripts read: that it cannot be written is told and is an error, but a character that
its encoding lacks is not.
"""

from __future__ import annotations

import io
import os
import sys

__all__ = ("flushed", "prepare_streams")

#: How long a reader of standard error that is slow, on a descriptor that does not block, is waited for.
_PATIENCE_SECS = 1.0


def prepare_streams() -> None:
    """Sets the streams up; before anything is printed, and before the first file is opened."""
    _fill_closed()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Halves of characters, as names of files and replies of models may hold, have no form in UTF-8.
        sys.stdout.reconfigure(errors="replace")
    if sys.platform == "win32" and sys.stderr.isatty():
        return  # A console takes everything, in an encoding of its own.
    sys.stderr = io.TextIOWrapper(
        _BestEffort(2, "w", closefd=False), sys.stderr.encoding, "backslashreplace", line_buffering=True
    )


def _fill_closed() -> None:
    """Puts the null device where standard input, output or error are closed.

    Otherwise the next file that is opened gets that number, and what is printed ends up in it.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            try:
                os.fstat(number)
            except OSError:
                os.open(os.devnull, os.O_RDWR)  # The lowest free number, which is this one.
            setattr(sys, name, open(number, mode, closefd=False))


class _BestEffort(io.FileIO):
    """A file that takes everything it is given; what cannot be written is dropped.

    It stands below the text, and without a buffer, so that nothing is left for the interpreter to fail with at its end.
    """

    def write(self, data: object) -> int:
        view = memoryview(data).cast("B")  # type: ignore[arg-type]  # any buffer, which has no type before Python 3.12
        rest = view
        try:
            while rest:
                written = super().write(rest)
                if written is None and not self._is_ready():
                    break
                rest = rest[written or 0 :]
        except OSError:
            pass
        return len(view)

    def _is_ready(self) -> bool:
        import select

        return bool(select.select([], [self.fileno()], [], _PATIENCE_SECS)[1])


def flushed(code: int) -> int:
    """The exit code, once what was printed has left the process or has turned out to be unwritable."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = 141
    except OSError as err:
        print(f"error: cannot write to standard output: {err.strerror}", file=sys.stderr)
        code = code or 1
    else:
        return code
    # Without this, the interpreter would try again on its way out, and complain.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return code
