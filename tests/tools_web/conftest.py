from __future__ import annotations

from typing import Any

import httpcore
import pytest


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the environment of the tests says."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def connects(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Where connections would go; none of them is made."""
    made: list[tuple[str, int]] = []

    async def connect_tcp(self: Any, host: str, port: int, **_: Any) -> Any:
        made.append((host, port))
        raise httpcore.ConnectError("no connections in this test")

    monkeypatch.setattr(httpcore.AnyIOBackend, "connect_tcp", connect_tcp)
    return made
