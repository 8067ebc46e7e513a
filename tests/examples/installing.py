"""The example plugins, built and installed into a folder of their own, and programs that see that folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import CHECKOUT

EXAMPLES = CHECKOUT / "docs" / "examples"
SECS = 50


def environment(site: Path, home: Path) -> dict[str, str]:
    """For child processes: what is in ``site`` is installed, and pip installs there, building with what is at hand."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENHEIM_", "PIP_"))}
    return kept | {
        "HOME": str(home),
        "OPENHEIM_HOME": str(home / "openheim"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(site),
        "PIP_TARGET": str(site),
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        # To pip, a false value of this variable means: no isolation.
        "PIP_NO_BUILD_ISOLATION": "false",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def run(
    *command: str, cwd: Path, environment: dict[str, str], status: int | None = 0
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECS,
    )
    assert status is None or done.returncode == status, (
        f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    )
    return done


def install(example: str, site: Path, work: Path) -> None:
    """Builds a copy of the example, so that nothing is left in the checkout, and installs it into ``site``."""
    copy = work / f"{example}-source"
    shutil.copytree(EXAMPLES / example, copy, ignore=shutil.ignore_patterns("__pycache__", ".*_cache"))
    run(sys.executable, "-m", "pip", "install", str(copy), cwd=work, environment=environment(site, work))
