"""Openheim itself as a subject, through the names that an embedding program uses."""

from __future__ import annotations


class OpenheimSubject:
    def __init__(self, port: int) -> None:
        raise NotImplementedError
