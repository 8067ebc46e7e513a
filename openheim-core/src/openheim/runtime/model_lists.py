"""The models that services say they have, with their sizes: a file for each provider entry.

A file is ``models/NAME.json`` in the data directory. It holds only what a service has said, so one that cannot be used
is as good as none.
"""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from openheim._reading import read_regular
from openheim.config.masking import without_credentials
from openheim.errors import ProviderError, ServerError, StorageError
from openheim.providers import ModelInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from openheim.providers import Provider

__all__ = ("MAX_MODELS", "ListSource", "ModelList", "ask_for_models", "read_models", "store_models")

_log = logging.getLogger(__name__)

#: Models of one list that are kept; the longest that a service is known to have is a tenth of that.
MAX_MODELS = 10_000
_MAX_ID_CHARACTERS = 256
_MAX_TOKENS = 2**40

#: A larger file is not ours.
_MAX_FILE_BYTES = 8 * 1024 * 1024

_FORMAT = 1
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


class ListSource(NamedTuple):
    """Whose list it is: an entry's name, kind and address (``""`` for the plugin's own)."""

    provider: str
    kind: str
    api_base: str


@dataclass(slots=True, frozen=True)
class ModelList:
    """What a service has said.

    Args:
        refreshed_at: when, in RFC 3339.
        models: by id.
    """

    refreshed_at: str
    models: dict[str, ModelInfo]


async def ask_for_models(
    provider: Provider, name: str, report: Callable[[str], None] = _log.warning
) -> tuple[ModelInfo, ...] | None:
    """Asks a provider for its models: those that have a usable name, each once, sorted; at most :data:`MAX_MODELS`.

    Args:
        name: the entry's, for errors.
        report: told, in a sentence, of models that were left out.

    Returns:
        None if it has no way to say.

    Raises:
        ProviderError: it did not answer, or with something else.
    """
    ask = getattr(provider, "models", None)
    if ask is None:
        return None
    try:
        listed: Any = await ask()
        if isinstance(listed, str | bytes):
            raise TypeError("text")
        rest = iter(listed)
        infos = _usable(islice(rest, MAX_MODELS))
        is_cut = next(rest, None) is not None
    except ProviderError:
        raise
    except Exception as err:  # whatever a plugin raises or returns is what is wrong with it
        raise ServerError(
            f"provider {name!r} failed to list its models: {type(err).__name__}",
            hint="this is a fault in its plugin",
            retryable=False,
        ) from err
    if is_cut:
        report(f"provider {name!r} lists more than {MAX_MODELS} models; the others are left out")
    return tuple(infos[key] for key in sorted(infos))


def _usable(listed: Iterable[Any]) -> dict[str, ModelInfo]:
    infos: dict[str, ModelInfo] = {}
    for info in listed:
        if isinstance(info, ModelInfo) and _is_name(info.id):
            known = ModelInfo(info.id, _tokens(info.context_window), _tokens(info.max_output_tokens))
            infos.setdefault(info.id, known)
    return infos


def store_models(data_dir: Path, source: ListSource, models: Iterable[ModelInfo], refreshed_at: str) -> None:
    """Keeps what a service has said, in one step.

    Raises:
        StorageError: the file cannot be written; an old one is untouched.
    """
    from openheim.store.writing import replace_whole

    rows = [[info.id, info.context_window, info.max_output_tokens] for info in models]
    document = {"format": _FORMAT, "source": _shown(source), "refreshed_at": refreshed_at, "models": rows}
    path = _path(data_dir, source.provider)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        raise StorageError(f"cannot make {path.parent}: {err.strerror}", hint="check permissions") from err
    replace_whole(path, (json.dumps(document, separators=(",", ":")) + "\n").encode())


def read_models(data_dir: Path, source: ListSource) -> ModelList | None:
    """What was kept of an entry; None if nothing was, or the entry has another kind or address since."""
    try:
        document = json.loads(read_regular(_path(data_dir, source.provider), limit=_MAX_FILE_BYTES))
        if document["format"] != _FORMAT or document["source"] != _shown(source):
            return None
        infos = [
            ModelInfo(name, _tokens(window), _tokens(output))
            for name, window, output in document["models"][:MAX_MODELS]
        ]
        refreshed_at = document["refreshed_at"]
        if not (isinstance(refreshed_at, str) and all(_is_name(info.id) for info in infos)):
            return None
    except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError):
        return None
    return ModelList(refreshed_at, {info.id: info for info in infos})


def _shown(source: ListSource) -> list[str]:
    # The address may hold a user and a password.
    return [source.provider, source.kind, without_credentials(source.api_base)]


def _path(data_dir: Path, name: str) -> Path:
    # An entry may be called anything, and a file may not.
    if _PLAIN_NAME.fullmatch(name) is None:
        from hashlib import sha256

        name = f"={sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
    return data_dir / "models" / f"{name}.json"


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and 0 < len(name) <= _MAX_ID_CHARACTERS and name.isprintable() and bool(name.strip())


def _tokens(value: Any) -> int | None:
    return value if type(value) is int and 0 < value < _MAX_TOKENS else None
