"""``OPENHEIM_TRACE_PLUGINS=1``: a log line for every hook call."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pluggy

__all__ = ("trace_hook_calls",)

logger = logging.getLogger("openheim.plugins.trace")


def trace_hook_calls(manager: pluggy.PluginManager) -> None:
    """Logs each call: hook, plugins, time taken, type of the outcome. Never the arguments, which may hold secrets."""
    started: list[float] = []

    def before(_hook: str, _implementations: Sequence[Any], _arguments: Mapping[str, Any]) -> None:
        started.append(time.perf_counter())

    def after(
        outcome: pluggy.Result[Any], hook: str, implementations: Sequence[Any], _arguments: Mapping[str, Any]
    ) -> None:
        took = (time.perf_counter() - started.pop()) * 1000
        plugins = ", ".join(implementation.plugin_name for implementation in implementations)
        what = outcome.exception if outcome.exception is not None else outcome.get_result()
        logger.info("%s by %s: %s in %.1f ms", hook, plugins or "none", type(what).__name__, took)

    # Asked for by name, so it is shown whatever the level of everything else.
    logger.setLevel(logging.INFO)
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        logger.addHandler(handler)
    manager.add_hookcall_monitoring(before, after)
