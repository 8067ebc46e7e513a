"""Makes sessions from what was asked for, the settings and the managed policy."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from openheim.permissions import parse_rule
from openheim.prompt import merged_skills
from openheim.runtime.options import SessionOptions, governed
from openheim.runtime.places import Places, current_directory
from openheim.runtime.session import Session
from openheim.store import SessionMeta

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openheim.runtime.arguments import SessionArguments
    from openheim.runtime.binding import ModelBinding
    from openheim.runtime.gates import Gates
    from openheim.runtime.places import Place
    from openheim.runtime.runtime import Runtime
    from openheim.store import StoredSession

__all__ = ("SessionMaker",)


class SessionMaker:
    """Makes the sessions of a runtime, which does with them what it likes."""

    def __init__(self, runtime: Runtime, gates: Gates) -> None:
        self._runtime = runtime
        self._gates = gates
        self._places = Places(runtime.loaded)

    def place(self, cwd: Path | str | None, warnings: list[str]) -> Place:
        """The place of a session that is started with this directory. Raises :class:`ConfigError`."""
        place = self._places.at(Path(cwd) if cwd is not None else current_directory())
        # Where nobody asked for a directory, the configured one is what they expect.
        if place.moved and cwd is not None:
            warnings.append(place.moved)
        return place

    def new(self, asked: SessionArguments, skills: Sequence[str]) -> Session:
        """A session that did not exist before. Raises as :meth:`openheim.Runtime.new_session` does."""
        runtime = self._runtime
        warnings: list[str] = []
        place = self.place(asked.cwd, warnings)
        binding = runtime.bind(asked.provider, asked.model)
        runtime.store.prepare()
        now = runtime.timestamp()
        mode = runtime.loaded.config.permissions.mode if asked.mode is None else asked.mode
        meta = SessionMeta(
            id=str(uuid.uuid4()),
            created_at=now,
            updated_at=now,
            mode=runtime.governed_mode(mode, warnings.append),
            skills=list(skills),
        )
        return self.make(meta, place, binding, asked, warnings)

    def make(
        self,
        meta: SessionMeta,
        place: Place,
        binding: ModelBinding,
        asked: SessionArguments,
        warnings: list[str],
        stored: StoredSession | None = None,
    ) -> Session:
        """The object of a session.

        Args:
            warnings: what a person should know about it; further ones are added.
            stored: what is on disk of it, if it is not new.
        """
        runtime = self._runtime
        options = self._options(asked, warnings)
        skills = merged_skills(runtime.loaded.config.default_skills, meta.skills)
        prompt = place.prompt.for_session(skills, meta.created_at[:10])
        if stored is None:
            prompt.require_skills()
        meta.cwd = str(place.cwd)
        if place.denied:
            # A trusted project's rules hold in it, although it is not the runtime's own.
            options = replace(options, deny=(*options.deny, *place.denied))
        session = Session(
            runtime,
            meta,
            binding=binding,
            toolbox=runtime.toolbox_for(place.files.root),
            files=place.files,
            prompt=prompt,
            options=options,
            first_seq=self._first_seq(),
            stored=stored,
        )
        session.warnings = tuple(warnings)
        return session

    def _options(self, asked: SessionArguments, warnings: list[str]) -> SessionOptions:
        loaded = self._runtime.loaded
        config = loaded.config
        gate = governed(loaded, asked.gate, "permissions", "gate", warn=warnings.append)
        max_iterations = governed(loaded, asked.max_iterations, "max_iterations", warn=warnings.append)
        asked_gate = gate if gate is not None else config.permissions.gate
        return SessionOptions(
            gate=self._gates.get(asked_gate),
            asked_gate=asked_gate,
            allow=tuple(map(parse_rule, (*config.permissions.allow, *asked.allow))),
            deny=tuple(map(parse_rule, (*config.permissions.deny, *asked.deny))),
            attended=asked.attended,
            max_iterations=max_iterations if max_iterations is not None else config.max_iterations,
        )

    def _first_seq(self) -> int:
        # Numbers must grow over restarts of the process, and time does.
        return int(self._runtime.steps.now().timestamp() * 1000) * 1000
