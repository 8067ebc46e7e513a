"""The part of the provider contract that is about failures: told as what they are, and without secrets."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import pytest

from openheim.errors import ProviderConnectionError, ProviderError, ProviderTimeoutError
from openheim.testing.http import HttpAnswer
from openheim.testing.provider_suite import KEY, ProviderSuite, make_call

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openheim.plugins.host import PluginHost
    from openheim.providers import Provider, ProviderSettings
    from openheim.testing.http import Answer

__all__ = ("STATUSES", "TroubleChecks")

#: Statuses that mean the same wherever they come from, and the kind of error that each is.
STATUSES = {
    401: "auth",
    402: "billing",
    404: "not_found",
    409: "conflict",
    413: "context_overflow",
    422: "invalid_request",
    429: "rate_limit",
    500: "server_error",
    503: "overloaded",
    504: "timeout",
}


class TroubleChecks(ProviderSuite):
    @pytest.mark.parametrize(
        "trouble",
        ["no connection", "broken stream", "stream cut short", "not the wire", "empty", "401", "429", "500"],
    )
    async def test_failures_are_provider_errors(
        self, host: PluginHost, settings: ProviderSettings, caplog: pytest.LogCaptureFixture, trouble: str
    ) -> None:
        """Whatever the service does, what comes out is a ProviderError that does not hold the key."""
        caplog.set_level(logging.DEBUG)
        provider = host.create_provider(self.name, settings, self._http(self._trouble(trouble)))
        request = self._request(provider)
        try:
            await make_call(provider, request)
        except ProviderError as err:
            texts = [str(err), repr(err), err.hint, caplog.text]
            assert not any(KEY in text for text in texts), f"the key shows in an error or a log ({trouble})"
        except Exception as err:
            raise AssertionError(f"{trouble}: generate raised {type(err).__name__}, no ProviderError: {err}") from err
        else:
            assert self.answer is None, f"{trouble}: generate gave a reply"

    def _trouble(self, trouble: str) -> Answer | None:
        if trouble == "no connection":
            return None
        if trouble == "broken stream":
            return (self.answer or HttpAnswer()).cut(ProviderConnectionError("the connection broke"))
        if trouble == "stream cut short":
            return (self.answer or HttpAnswer()).cut()
        if trouble == "not the wire":
            return HttpAnswer.of("<html>\n<p>Hello</p>\n</html>", content_type="text/html")
        if trouble == "empty":
            return HttpAnswer()
        # Services quote the key they were given.
        body = json.dumps({"error": {"message": f"no luck with key {KEY}", "type": "error", "code": int(trouble)}})
        return HttpAnswer.of(body, status=int(trouble), content_type="application/json")

    async def test_errors_are_classified(self, host: PluginHost, settings: ProviderSettings) -> None:
        """Retries, fallbacks, exit codes and what users are told all go by the kind of an error."""
        if self.answer is None:
            return
        wrong = []
        for kind, answer in self._failures(self.answer):
            provider = host.create_provider(self.name, settings, self._http(answer))
            try:
                await make_call(provider, self._request(provider))
            except ProviderError as err:
                if err.kind != kind:
                    wrong.append(f"{kind} came out as {err.kind} ({err.message[:80]})")
            else:
                wrong.append(f"{kind} came out as a reply")
        assert not wrong, "; ".join(wrong)

    def _failures(self, answer: HttpAnswer) -> Iterator[tuple[str, Answer]]:
        """What fails, by its kind: what is common to all services, and then what the author has filled in."""
        for status, kind in STATUSES.items():
            body = json.dumps({"error": {"message": "it failed"}})
            yield kind, HttpAnswer.of(body, status=status, content_type="application/json")
        yield "connection", ProviderConnectionError("no connection")
        yield "timeout", ProviderTimeoutError("nothing came in time")
        yield "connection", answer.cut(ProviderConnectionError("the connection broke"))
        yield "timeout", answer.cut(ProviderTimeoutError("nothing more came in time"))
        yield "stream_incomplete", answer.cut()
        yield from self.errors.items()

    async def test_key_does_not_show(
        self, provider: Provider, settings: ProviderSettings, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        await make_call(provider, self._request(provider))
        for text in (repr(provider), str(provider), repr(settings.options), caplog.text):
            assert KEY not in text, "the key shows in a repr or a log"
