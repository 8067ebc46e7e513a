"""What importing a module costs and does, found out in a child process."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

__all__ = ("HEAVY_MODULES", "ImportReport", "import_report")

#: Packages that no plugin module may import before it is used: each takes tens to hundreds of milliseconds.
HEAVY_MODULES = (
    "acp",
    "aiohttp",
    "anthropic",
    "google",
    "httpx",
    "httpx2",
    "mcp",
    "openai",
    "pydantic",
    "requests",
    "textual",
    "typer",
)

_MARK = "openheim-import-report"

# Audit hooks see every connection, look-up and child process, whichever library makes it.
_CHILD = f"""
import os, sys
watched = ("socket.connect", "socket.getaddrinfo", "socket.bind", "subprocess.Popen", "os.system", "os.posix_spawn")
seen = []
sys.addaudithook(lambda event, _arguments: seen.append(event) if event in watched else None)
os.write(2, b"{_MARK}\\n")
__import__(sys.argv[1])
os.write(2, ("{_MARK} " + " ".join(seen) + "\\n").encode())
"""


@dataclass(slots=True, frozen=True)
class ImportReport:
    """What happened when a module was imported in a fresh interpreter.

    Args:
        module: its dotted name.
        modules: every module imported on the way, itself included, that the interpreter's start had not imported.
        import_ms: how long it took, with everything imported on the way. To be shown, not asserted: machines differ.
        actions: audit events of things an import should leave alone: connections, look-ups, child processes.
        printed: what it wrote to stdout, which may be a protocol's pipe.
    """

    module: str
    modules: tuple[str, ...]
    import_ms: float
    actions: tuple[str, ...]
    printed: str

    def loaded(self, *packages: str) -> tuple[str, ...]:
        """Those of ``packages`` (top-level or dotted names) that the import loaded, wholly or in part."""
        return tuple(
            package
            for package in packages
            if any(name == package or name.startswith(package + ".") for name in self.modules)
        )


def import_report(module: str, *, timeout_secs: float = 20.0) -> ImportReport:
    """Imports ``module`` in a child process with this process's ``sys.path``.

    Raises:
        ImportError: it cannot be imported, ended the process, or did not finish in time.
    """
    command = [sys.executable, "-X", "importtime", "-c", _CHILD, module]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    try:
        child = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_secs, env=environment
        )
    except subprocess.TimeoutExpired as err:
        raise ImportError(f"importing {module} did not finish within {timeout_secs:g} s", name=module) from err
    startup, began, rest = child.stderr.partition(_MARK + "\n")
    trace, ended, report = rest.partition(_MARK)
    if not (began and ended):
        said = rest if began else startup
        lines = [line for line in said.splitlines() if line and not line.startswith("import time:")]
        cause = lines[-1] if lines else f"exit code {child.returncode}"
        raise ImportError(f"{module} cannot be imported: {cause}", name=module)
    known = {name for name, _ms in _timed(startup)}
    imported = [(name, ms) for name, ms in _timed(trace) if name not in known]
    return ImportReport(
        module=module,
        modules=tuple(sorted({name for name, _ms in imported})),
        import_ms=sum(ms for _name, ms in imported),
        actions=tuple(report.partition("\n")[0].split()),
        printed=child.stdout,
    )


def _timed(trace: str) -> list[tuple[str, float]]:
    """Names and own milliseconds in what ``-X importtime`` wrote."""
    found = []
    for line in trace.splitlines():
        parts = line.removeprefix("import time:").split("|")
        if len(parts) == 3 and parts[0].strip().isdigit():
            found.append((parts[2].strip(), int(parts[0]) / 1000))
    return found
