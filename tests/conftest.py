"""What holds for every test: asyncio as backend, a fresh home folder, no keys, and the code of this checkout."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import hypothesis
import pytest

from tests.support.keys import watched_logs

CHECKOUT = Path(__file__).resolve().parent.parent
PACKAGES = (
    "openheim",
    "openheim_provider_openai",
    "openheim_provider_anthropic",
    "openheim_provider_gemini",
    "openheim_provider_demo",
    "openheim_tools_fs",
    "openheim_tools_shell",
    "openheim_tools_web",
)
PRIVATE = re.compile(r"^OPENHEIM_|_API_KEY$")


def pytest_configure() -> None:
    # Child processes start as they do for users: from byte code. Without it each of them compiles the sources anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # A job in the background has Ctrl+C ignored, and so would everything that it starts. A user's terminal has it not.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # How long an example takes is the machine's affair.
    hypothesis.settings.register_profile(
        "openheim", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
    hypothesis.settings.load_profile("openheim")
    for package in PACKAGES:
        # `pip install '.[all]'` in the environment of the tests replaces its editable members by copies, silently.
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            continue  # A smaller install is tested on purpose; what needs the missing package says so.
        if not Path(spec.origin).resolve().is_relative_to(CHECKOUT):
            raise pytest.UsageError(
                f"{package} is imported from {spec.origin}, which is not this checkout, so its code would not be "
                "tested. Run in the root of the checkout: pip install -r tests/requirements.txt"
            )


@pytest.fixture(autouse=True)
def no_key_in_logs() -> Iterator[None]:
    """Fails the test if a provider's key was logged meanwhile."""
    with watched_logs():
        yield


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def long_counts() -> bool:
    """Whether tests marked ``slow`` repeat as often as they can, instead of as often as a suite has time for."""
    return os.environ.get("LONG_COUNTS", "") not in ("", "0")


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh ``OPENHEIM_HOME``, which is returned, and nothing of the caller's settings or keys."""
    for name in [name for name in os.environ if PRIVATE.search(name)]:
        monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home") / "openheim"
    monkeypatch.setenv("OPENHEIM_HOME", str(home))
    return home
