"""Lists of models: what is taken of what a plugin says, and that nothing else gets into a file or out of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openheim.errors import AuthError, ProviderError, ServerError
from openheim.providers import ModelInfo
from openheim.runtime.model_lists import MAX_MODELS, ListSource, ask_for_models, read_models, store_models
from openheim.testing import ScriptedProvider

pytestmark = pytest.mark.anyio

SOURCE = ListSource("mine", "openai", "https://user:pass@h.example/v1?x")


class Listing(ScriptedProvider):
    def __init__(self, answer: Callable[[], Any]) -> None:
        super().__init__([])
        self.answer = answer

    async def models(self) -> Any:
        return self.answer()


def raising(error: Exception) -> Callable[[], Any]:
    def answer() -> Any:
        raise error

    return answer


def breaking() -> Any:
    yield ModelInfo("one")
    raise ValueError("canary")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (raising(AuthError("refused")), AuthError),
        (raising(RuntimeError("canary")), ServerError),
        (lambda: None, ServerError),
        (lambda: "models", ServerError),
        (lambda: 7, ServerError),
        (breaking, ServerError),
    ],
)
async def test_whatever_is_no_list_is_an_error_of_the_provider(answer: Any, kind: type[ProviderError]) -> None:
    with pytest.raises(kind) as caught:
        await ask_for_models(Listing(answer), "mine")
    assert "canary" not in str(caught.value)


async def test_one_without_a_list_says_nothing() -> None:
    class Silent:
        wire = default_model = "silent"

    assert await ask_for_models(Silent(), "mine") is None  # type: ignore[arg-type]  # it need not answer for this


async def test_a_list_without_end_has_one() -> None:
    endless = (ModelInfo(f"m{number}") for number in itertools.count())
    told: list[str] = []
    found = await ask_for_models(Listing(lambda: endless), "mine", told.append)
    assert found is not None and len(found) == MAX_MODELS
    assert told == [f"provider 'mine' lists more than {MAX_MODELS} models; the others are left out"]


async def test_a_list_of_just_the_most_is_whole() -> None:
    told: list[str] = []
    most = [ModelInfo(f"m{number}") for number in range(MAX_MODELS)]
    found = await ask_for_models(Listing(lambda: most), "mine", told.append)
    assert found is not None and len(found) == MAX_MODELS
    assert told == []


def test_a_list_is_read_as_it_was_stored(tmp_path: Path) -> None:
    models = [ModelInfo("a", 10, None), ModelInfo("\u00e4/b", None, 5)]
    store_models(tmp_path, SOURCE, models, "2026-01-01T00:00:00Z")
    kept = read_models(tmp_path, SOURCE)
    assert kept is not None and list(kept.models.values()) == models
    assert kept.refreshed_at == "2026-01-01T00:00:00Z"
    (file,) = (tmp_path / "models").iterdir()
    assert "pass" not in file.read_text()
    for other in (SOURCE._replace(kind="gemini"), SOURCE._replace(api_base="https://other.example")):
        assert read_models(tmp_path, other) is None


@pytest.mark.parametrize("name", ["..", "a/b", "", "\x00", "x" * 300, "\u00e4", "\ud800", "CON.", "-rf"])
def test_an_entry_may_be_called_anything(tmp_path: Path, name: str) -> None:
    source = SOURCE._replace(provider=name)
    store_models(tmp_path, source, [ModelInfo("a")], "now")
    kept = read_models(tmp_path, source)
    assert kept is not None and list(kept.models) == ["a"]
    assert [path.parent for path in tmp_path.rglob("*.json")] == [tmp_path / "models"]


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"format": 1, "source": ["mine"], "models": 7}', b'{"format": 2}'],
)
def test_what_is_no_list_is_as_good_as_none(tmp_path: Path, content: bytes) -> None:
    store_models(tmp_path, SOURCE, [], "now")
    (file,) = (tmp_path / "models").iterdir()
    file.write_bytes(content)
    assert read_models(tmp_path, SOURCE) is None
