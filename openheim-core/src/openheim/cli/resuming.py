"""Going on with a stored session, under the settings of the project that it works in."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from openheim.cli import options
from openheim.cli.starting import make_runtime

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openheim.runtime import Runtime, Session

__all__ = ("resume_named",)


def resume_named(
    prefix: str,
    flags: Mapping[str, Any] | None = None,
    *,
    cwd: str | None = None,
    trust: bool = False,
    **session_options: Any,
) -> tuple[Runtime, Session]:
    """The session that begins with ``prefix``, and a runtime with the settings of the project that it works in.

    Tools work in the session's directory wherever the command is started, so the rules of that project have to hold.

    Args:
        flags, trust: as of :func:`~openheim.cli.starting.make_runtime`.
        cwd: the directory to go on in, instead of the session's own.
        session_options: further arguments of :meth:`~openheim.Runtime.load_session`.

    Raises:
        SessionNotFoundError: there is no such session.
        UsageError: there are several.
        ConfigError, PluginError, StorageError: as of what is called.
    """
    from openheim.config.load import load_config
    from openheim.config.project import find_project
    from openheim.store import HistoryStore
    from openheim.store.operations.finding import find_session

    # Where history is kept no project decides.
    users = load_config(options.current().config, trust=False)
    store = HistoryStore(users.data_dir / "history")
    session_id = find_session(store, prefix)
    meta = store.read_meta(session_id)
    stored = meta.cwd if meta is not None and meta.cwd is not None and os.path.isdir(meta.cwd) else None

    def load(directory: str | None) -> tuple[Runtime, Session]:
        runtime = make_runtime(flags, cwd=directory, trust=trust)
        return runtime, runtime.load_session(session_id, cwd=cwd, **session_options)

    runtime, session = load(cwd if cwd is not None else stored)
    project = runtime.loaded.project
    if find_project(session.files.cwd) != (project.folder if project is not None else None):
        # The metadata is missing, or older than the log: only the session itself knew its directory.
        runtime, session = load(str(session.files.cwd))
    return runtime, session
