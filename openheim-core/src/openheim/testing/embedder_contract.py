"""The contract of embedders, as a suite to inherit. Importing this takes pytest."""

from __future__ import annotations

import inspect
import itertools
import json
import logging
import math
from typing import TYPE_CHECKING, Any, ClassVar

import anyio
import anyio.lowlevel
import pytest

from openheim.errors import InvalidRequestError, ProviderConnectionError, ProviderError, ProviderTimeoutError
from openheim.providers import ProviderSettings
from openheim.testing.contract import Contract
from openheim.testing.http import HttpAnswer, HttpRequest, ScriptedHttp
from openheim.testing.provider_suite import KEY, limit
from openheim.testing.provider_trouble import STATUSES
from openheim.testing.scripted import Pause

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from openheim.embeddings import Embedder
    from openheim.plugins.host import PluginHost
    from openheim.testing.http import Answer

__all__ = ("EmbedderContract",)

_TEXTS = ("one", "größe", "three words here", "one")
#: More than services take at once.
_MANY = 700


class EmbedderContract(Contract):
    """Tests for a plugin of group ``openheim.embeddings``::

        class TestHashes(EmbedderContract):
            plugin = "acme_openheim_hashes.plugin"
            name = "hashes"

    No test opens a connection. For an embedder that asks a service, override :meth:`texts_in` and :meth:`answer_with`.

    Attributes:
        name: the entry point's name.
        model: the model that makes the embeddings.
        options: the plugin's own keys of a ``[providers.NAME]`` entry.
        api_base: address of the service, for an embedder that knows none by itself.
        most_texts: how many texts the service takes in one request; None for one that is asked nothing.
        errors: kinds of errors (see :mod:`openheim.errors`), each with what only this service answers then.
    """

    kind = "embeddings"

    name: ClassVar[str] = ""
    model: ClassVar[str] = "contract-model"
    options: ClassVar[Mapping[str, Any]] = {}
    api_base: ClassVar[str] = ""
    most_texts: ClassVar[int | None] = None
    errors: ClassVar[Mapping[str, Answer]] = {}

    def texts_in(self, content: bytes) -> list[str]:
        """The texts that the body of a request asks for, in order."""
        return []

    def answer_with(self, vectors: list[list[float]]) -> HttpAnswer:
        """What the service answers with these vectors, in order."""
        return HttpAnswer()

    @pytest.fixture
    def settings(self, host: PluginHost) -> ProviderSettings:
        options = host.validate_settings("embeddings", self.name, self.options, where="options")
        return ProviderSettings("contract", self.name, self.api_base, KEY, options=options)

    @pytest.fixture
    def create(self, host: PluginHost, settings: ProviderSettings) -> Callable[[ScriptedHttp], Embedder]:
        return lambda http: host.create_embedder(self.name, settings, self.model, http)

    @pytest.fixture
    def http(self) -> ScriptedHttp:
        return ScriptedHttp(itertools.repeat(self._served))

    @pytest.fixture
    def embedder(self, create: Callable[[ScriptedHttp], Embedder], http: ScriptedHttp) -> Embedder:
        return create(http)

    def _name(self) -> str:
        return self.name

    def _served(self, request: HttpRequest) -> HttpAnswer:
        return self.answer_with([_vector_of(text) for text in self.texts_in(request.content)])

    # Shape

    def test_members(self, embedder: Embedder, http: ScriptedHttp) -> None:
        assert inspect.iscoroutinefunction(embedder.embed), "embed is not async"
        _ = embedder.dimension
        assert not http.requests, "creating the embedder makes a request"

    async def test_one_vector_for_each_text_in_order(self, embedder: Embedder, http: ScriptedHttp) -> None:
        vectors = await _embed(embedder, _TEXTS)
        alone = [(await _embed(embedder, [text]))[0] for text in _TEXTS]
        assert all(map(_is_close, vectors, alone)), "a text has another vector among others than alone: wrong order?"
        assert not _is_close(vectors[0], vectors[2]), "two texts have one vector"
        if self.most_texts is not None:
            assert vectors == [_vector_of(text) for text in _TEXTS], "the vectors are not those of the service"
        for vector in vectors:
            assert all(type(number) is float and math.isfinite(number) for number in vector), "no list of floats"

    async def test_dimension_is_told(self, embedder: Embedder) -> None:
        sizes = {len(vector) for vector in await _embed(embedder, _TEXTS)}
        assert sizes == {embedder.dimension}, f"dimension is {embedder.dimension}, and vectors have {sizes} numbers"

    # Texts

    async def test_no_texts_have_no_vectors(self, embedder: Embedder, http: ScriptedHttp) -> None:
        assert await _embed(embedder, []) == []
        assert not http.requests, "a request is made for no texts"

    @pytest.mark.parametrize("blank", ["", " \n\t", "\u2003"], ids=repr)
    async def test_blank_texts_are_refused(self, embedder: Embedder, http: ScriptedHttp, blank: str) -> None:
        texts = [*map(str, range(200)), blank, "more"]
        with pytest.raises(InvalidRequestError) as raised:
            await _embed(embedder, texts)
        assert "200" in str(raised.value), "the error does not say which text is blank"
        assert not http.requests, "a request is made though a text is blank"

    async def test_many_texts(self, embedder: Embedder, http: ScriptedHttp) -> None:
        """They go in batches that the service takes, each text once, and come back in order."""
        texts = [f"text number {number}" for number in range(_MANY)]
        vectors = await _embed(embedder, texts)
        assert len(vectors) == _MANY, f"{len(vectors)} vectors of {_MANY} texts"
        asked = [self.texts_in(request.content) for request in http.requests]
        if self.most_texts is not None:
            most = max(map(len, asked))
            assert most <= self.most_texts, f"{most} texts are sent at once, and the service takes {self.most_texts}"
            assert list(itertools.chain.from_iterable(asked)) == texts, "not each text is sent once"
            assert vectors == [_vector_of(text) for text in texts], "the vectors are not in the order of the texts"

    @pytest.mark.parametrize("text", ["\ud800", "\x00", "x" * 300_000], ids=["half a character", "null", "long"])
    async def test_odd_texts(self, embedder: Embedder, text: str) -> None:
        """They have a vector, or are refused as a provider refuses."""
        try:
            vectors = await _embed(embedder, ["first", text])
        except ProviderError:
            return
        assert len(vectors) == 2

    # A service that fails

    @pytest.mark.parametrize("change", ["one too few", "one too many", "none", "another size"])
    async def test_wrong_vectors_are_an_error(self, create: Callable[[ScriptedHttp], Embedder], change: str) -> None:
        """In place of those of two texts. A wrong one in an index is found by nobody."""
        if self.most_texts is None:
            return
        first, second = map(_vector_of, ("a", "b"))
        wrong = {
            "one too few": [first],
            "one too many": [first, second, second],
            "none": [],
            "another size": [first, second[:-1]],
        }
        with pytest.raises(ProviderError):
            await _embed(create(ScriptedHttp([self.answer_with(wrong[change])])), ["a", "b"])

    async def test_the_size_stays(self, create: Callable[[ScriptedHttp], Embedder]) -> None:
        if self.most_texts is None:
            return
        longer, shorter = _vector_of("a"), _vector_of("a")[:-1]
        embedder = create(ScriptedHttp([self.answer_with([longer]), self.answer_with([shorter])]))
        await _embed(embedder, ["a"])
        with pytest.raises(ProviderError):
            await _embed(embedder, ["b"])

    @pytest.mark.parametrize("trouble", ["no connection", "not the wire", "empty", "{}", "[]", "401", "429", "500"])
    async def test_failures_are_provider_errors(
        self, create: Callable[[ScriptedHttp], Embedder], caplog: pytest.LogCaptureFixture, trouble: str
    ) -> None:
        """Whatever the service does, what comes out is a ProviderError that does not hold the key."""
        caplog.set_level(logging.DEBUG)
        answer = _trouble(trouble)
        try:
            await _embed(create(ScriptedHttp(() if answer is None else [answer])), ["a"])
        except ProviderError as err:
            shown = [str(err), repr(err), err.hint, caplog.text]
            assert not any(KEY in text for text in shown), f"the key shows in an error or a log ({trouble})"
        except Exception as err:
            raise AssertionError(f"{trouble}: embed raised {type(err).__name__}, no ProviderError: {err}") from err
        else:
            assert self.most_texts is None, f"{trouble}: embed gave vectors"

    async def test_errors_are_classified(self, create: Callable[[ScriptedHttp], Embedder]) -> None:
        """Retries and what users are told go by the kind of an error."""
        if self.most_texts is None:
            return
        failures: list[tuple[str, Answer]] = [
            (kind, HttpAnswer.of('{"error": {"message": "it failed"}}', status=status, content_type="application/json"))
            for status, kind in STATUSES.items()
        ]
        failures += [
            ("connection", ProviderConnectionError("no connection")),
            ("timeout", ProviderTimeoutError("nothing came in time")),
            ("connection", self.answer_with([_vector_of("a")]).cut(ProviderConnectionError("it broke"))),
            *self.errors.items(),
        ]
        wrong = []
        for kind, answer in failures:
            try:
                await _embed(create(ScriptedHttp([answer])), ["a"])
            except ProviderError as err:
                if err.kind != kind:
                    wrong.append(f"{kind} came out as {err.kind} ({err.message[:80]})")
            else:
                wrong.append(f"{kind} came out as vectors")
        assert not wrong, "; ".join(wrong)

    # Calls

    async def test_cancelled_before_it_starts(self, embedder: Embedder) -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await embedder.embed(["a"])
        assert scope.cancelled_caught, "embed ran to its end though it was cancelled; it has to await something"

    async def test_cancelled_in_the_middle(self, create: Callable[[ScriptedHttp], Embedder]) -> None:
        """It ends at once and closes its exchange."""
        if self.most_texts is None:
            return
        pause = Pause()
        http = ScriptedHttp([self.answer_with([_vector_of("a")]).cut(pause)])
        embedder = create(http)
        with limit("embed did not end after it was cancelled"):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(embedder.embed, ["a"])
                await pause.reached()
                tasks.cancel_scope.cancel()
        assert http.active == 0, "the exchange with the service is still open"

    async def test_calls_at_a_time_do_not_mix(self, embedder: Embedder) -> None:
        texts = [[f"{call} {number}" for number in range(3)] for call in range(4)]
        found: dict[int, list[list[float]]] = {}

        async def call(place: int) -> None:
            found[place] = await _embed(embedder, texts[place])

        async with anyio.create_task_group() as tasks:
            for place in range(len(texts)):
                tasks.start_soon(call, place)
        for place, vectors in found.items():
            again = await _embed(embedder, texts[place])
            assert all(map(_is_close, vectors, again)), "calls at the same time get one another's vectors"

    async def test_key_does_not_show(
        self,
        embedder: Embedder,
        http: ScriptedHttp,
        settings: ProviderSettings,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """It goes into a header: addresses end up in logs."""
        caplog.set_level(logging.DEBUG)
        await _embed(embedder, ["a"])
        for text in (repr(embedder), str(embedder), repr(settings.options), caplog.text):
            assert KEY not in text, "the key shows in a repr or a log"
        for request in http.requests:
            assert KEY not in request.url and KEY.encode() not in request.content, "the key is in an address or a body"


async def _embed(embedder: Embedder, texts: Sequence[str]) -> list[list[float]]:
    with limit("embed did not end"):
        return await embedder.embed(texts)


def _vector_of(text: str) -> list[float]:
    """What stands for the meaning of a text: numbers that 32 bits can hold, another for each text."""
    return [float(len(text)), float(sum(place * ord(letter) for place, letter in enumerate(text, 1)) % 65_521), 0.5]


def _is_close(one: Sequence[float], other: Sequence[float]) -> bool:
    return len(one) == len(other) and all(map(lambda a, b: math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-4), one, other))


def _trouble(trouble: str) -> HttpAnswer | None:
    if trouble == "no connection":
        return None
    if trouble == "not the wire":
        return HttpAnswer.of("<html>\n<p>Hello</p>\n</html>", content_type="text/html")
    if trouble == "empty":
        return HttpAnswer()
    if not trouble.isdigit():
        return HttpAnswer.of(trouble, content_type="application/json")
    # Services quote the key they were given.
    body = json.dumps({"error": {"message": f"no luck with key {KEY}", "type": "error", "code": int(trouble)}})
    return HttpAnswer.of(body, status=int(trouble), content_type="application/json")
