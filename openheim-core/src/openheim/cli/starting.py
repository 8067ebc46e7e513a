"""What commands that need plugins share: settings, logging, the plugin host, the runtime."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any

from openheim.cli import options
from openheim.cli.failures import warn
from openheim.cli.printing import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openheim.config.load import LoadedConfig
    from openheim.plugins.host import PluginHost
    from openheim.runtime import Runtime

__all__ = ("make_host", "make_runtime", "note", "read_settings")


def read_settings(flags: Mapping[str, Any] | None = None, *, trust: bool | None = None) -> LoadedConfig:
    """The settings, after their warnings were shown; raises :class:`~openheim.errors.ConfigError`."""
    from openheim.config.load import load_config

    _set_up_logging()
    loaded = load_config(options.current().config, flags=flags, trust=trust)
    for text in loaded.warnings:
        warn(text)
    for text in loaded.notices:
        note(text)
    return loaded


def make_host(loaded: LoadedConfig, *, report: Callable[[str], None] = warn) -> PluginHost:
    """The plugin host that the settings ask for."""
    import os

    from openheim.plugins.host import PluginHost
    from openheim.plugins.policy import policy_from

    chosen = options.current()
    policy = policy_from(
        loaded.config.plugins, os.environ, safe_mode=chosen.safe_mode, managed=loaded.managed.get("plugins")
    )
    return PluginHost(policy, report=report, debug=chosen.debug)


def make_runtime(flags: Mapping[str, Any] | None = None, *, cwd: str | None = None, trust: bool = False) -> Runtime:
    """The runtime that the settings ask for.

    Args:
        cwd: the working directory of the sessions to come, whose project may have settings of its own.
        trust: whether ``--trust`` was given.
    """
    _set_up_logging()
    from openheim.cli.trusting import trust_for
    from openheim.runtime import Runtime

    chosen = options.current()
    return Runtime.from_config(
        chosen.config,
        settings=flags,
        cwd=cwd,
        trust=trust_for(cwd, given=trust),
        safe_mode=chosen.safe_mode,
        debug=chosen.debug,
        report=note,
    )


def note(line: str) -> None:
    """Says on stderr what a person should know."""
    print(one_line(line if line.startswith("warning: ") else f"note: {line}"), file=sys.stderr)


class _OneLineFormatter(logging.Formatter):
    """Log records as single lines, like everything else on stderr."""

    def format(self, record: logging.LogRecord) -> str:
        text = one_line(super().format(record))
        return text if options.current().debug or not record.exc_info else text[:2000]


def _set_up_logging() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLineFormatter("%(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    level = options.current().log_level.upper()
    root.setLevel(max(logging.INFO, logging.getLevelName(level)))
    # The libraries below us log headers at debug level; only our own records go that deep.
    logging.getLogger("openheim").setLevel(level)
