"""What tests of programs and plugins need: fakes that follow a script, and contract suites to inherit.

::

    from openheim.testing import ScriptedProvider, ToolsetContract, reply_text

    class TestShout(ToolsetContract):
        plugin = "acme_openheim_shout.plugin"
        sample_calls = {"shout": {"text": "hello"}}

Names are imported when first used, so that only the contract classes need pytest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = (
    "HEAVY_MODULES",
    "EmbedderContract",
    "FakeTurn",
    "Fault",
    "FlakyProvider",
    "HttpAnswer",
    "HttpRequest",
    "ImportReport",
    "Pause",
    "PrefixChange",
    "PrefixGuard",
    "ProviderContract",
    "ScriptedHttp",
    "ScriptedProvider",
    "ScriptedReply",
    "ToolsetContract",
    "import_report",
    "reply_error",
    "reply_text",
    "reply_tool_calls",
)

_HOME = {
    "HEAVY_MODULES": "imports",
    "EmbedderContract": "embedder_contract",
    "FakeTurn": "turn",
    "Fault": "flaky",
    "FlakyProvider": "flaky",
    "HttpAnswer": "http",
    "HttpRequest": "http",
    "ImportReport": "imports",
    "Pause": "scripted",
    "PrefixChange": "prefixes",
    "PrefixGuard": "prefixes",
    "ProviderContract": "provider_contract",
    "ScriptedHttp": "http",
    "ScriptedProvider": "scripted",
    "ScriptedReply": "scripted",
    "ToolsetContract": "toolset_contract",
    "import_report": "imports",
    "reply_error": "scripted",
    "reply_text": "scripted",
    "reply_tool_calls": "scripted",
}

if TYPE_CHECKING:
    from openheim.testing.embedder_contract import EmbedderContract
    from openheim.testing.flaky import Fault, FlakyProvider
    from openheim.testing.http import HttpAnswer, HttpRequest, ScriptedHttp
    from openheim.testing.imports import HEAVY_MODULES, ImportReport, import_report
    from openheim.testing.prefixes import PrefixChange, PrefixGuard
    from openheim.testing.provider_contract import ProviderContract
    from openheim.testing.scripted import (
        Pause,
        ScriptedProvider,
        ScriptedReply,
        reply_error,
        reply_text,
        reply_tool_calls,
    )
    from openheim.testing.toolset_contract import ToolsetContract
    from openheim.testing.turn import FakeTurn


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'openheim.testing' has no attribute {name!r}")
    try:
        value = getattr(import_module(f"openheim.testing.{home}"), name)
    except ModuleNotFoundError as err:
        if err.name != "pytest":
            raise
        raise ImportError(f"{name} needs pytest: pip install pytest") from err
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
