"""The files that ``openheim sessions export`` writes and ``import`` reads."""

from __future__ import annotations

import os
import sys

from openheim._reading import read_given
from openheim.cli.printing import print_text
from openheim.errors import UsageError

__all__ = ("read_import", "write_export")

#: A larger file is no session.
_IMPORT_LIMIT = 1 << 29


def read_import(file: str) -> bytes:
    """What a file holds, or standard input for ``-``. Raises :class:`UsageError`."""
    try:
        if file == "-":
            data = sys.stdin.buffer.read(_IMPORT_LIMIT + 1)
        else:
            data = read_given(file, limit=_IMPORT_LIMIT)
    except OSError as err:
        raise UsageError(f"cannot read {file}: {err.strerror}", hint="name a file that can be read") from err
    if len(data) > _IMPORT_LIMIT:
        raise UsageError(f"{file} is larger than {_IMPORT_LIMIT >> 20} MiB", hint="import what export wrote")
    return data


def write_export(output: str, text: str, *, force: bool) -> None:
    """Writes to a file, which appears whole, or into what stands there and is none: a pipe, or ``/dev/null``.

    Args:
        force: replace a file that exists.

    Raises:
        UsageError: it exists, or cannot be written.
    """
    import stat

    from openheim.store.writing import create_whole, replace_whole

    data = text.encode(errors="replace")
    # Where it is a link, the file that it points to is meant.
    target = os.path.realpath(output)
    try:
        found = os.stat(output)
    except FileNotFoundError:
        found = None
    except OSError as err:
        raise UsageError(f"cannot write {output}: {err.strerror}", hint="name another file") from err
    try:
        if found is None:
            create_whole(target, data)
        elif _is_stdout(found):
            print_text(text, end="")
        elif stat.S_ISFIFO(found.st_mode) or stat.S_ISCHR(found.st_mode):
            with open(output, "wb", buffering=0) as stream:
                rest = memoryview(data)
                while rest:
                    rest = rest[stream.write(rest) or 0 :]
        elif not stat.S_ISREG(found.st_mode):
            raise UsageError(f"{output} is no file", hint="use another name")
        elif force:
            replace_whole(target, data)
            os.chmod(target, stat.S_IMODE(found.st_mode))
        else:
            raise FileExistsError
    except FileExistsError:
        raise UsageError(f"{output} exists already", hint="use another name, or --force") from None
    except OSError as err:
        raise UsageError(f"cannot write {output}: {err.strerror}", hint="name another file") from err


def _is_stdout(found: os.stat_result) -> bool:
    try:
        return os.path.samestat(found, os.fstat(1))
    except OSError:
        return False
