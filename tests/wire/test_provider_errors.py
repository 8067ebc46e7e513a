"""Which error an answer stands for: the cases of ``cases/errors``, and what they leave open."""

from __future__ import annotations

import json
import struct
from base64 import b64encode
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from openheim.errors import (
    AuthError,
    BillingError,
    BlockedError,
    ContextOverflowError,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitedError,
    ServerError,
)
from openheim.masking import mask_secrets
from openheim.provider_errors import MESSAGE_LIMIT, classify, classify_payload
from openheim.providers import ProviderSettings
from openheim.retry import RetryPolicy

CASES = Path(__file__).resolve().parent.parent / "cases" / "errors"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
KEY = "sk-test-5f0c3b9d"
SETTINGS = ProviderSettings("mine", "openai", api_key=KEY)


def rows() -> list[Any]:
    return [
        pytest.param(row, case.get("now"), id=f"{case['case']}-{number}-{row['wire']}-{row['status']}")
        for path in sorted(CASES.glob("*.json"))
        for case in [json.loads(path.read_text(encoding="utf-8"))]
        for number, row in enumerate(case["rows"])
    ]


def test_there_are_rows() -> None:
    assert len(rows()) >= 35


@pytest.mark.parametrize(("row", "now"), rows())
def test_case(row: dict[str, Any], now: str | None) -> None:
    headers = {name.lower(): value for name, value in row["headers"].items()}
    clock = datetime.fromisoformat(now) if now else NOW
    err = classify(row["status"], headers, row["body"].encode(), clock)
    expect = row["expect"]
    assert err.kind == expect["error_kind"]
    delay = RetryPolicy().delay_before(2, err, lambda: 0.5)
    assert (delay is not None) is expect["retry"]
    if "delay_s" in expect:
        assert delay == (1.0 if expect["delay_s"] == "fallback" else expect["delay_s"])


def answer(status: int, message: str = "m", /, *, headers: dict[str, str] | None = None, **error: Any) -> ProviderError:
    body = json.dumps({"error": {"message": message, **error}})
    return classify(status, headers or {}, body.encode(), NOW, settings=SETTINGS, key_variable="OPENAI_API_KEY")


@pytest.mark.parametrize(
    "marker",
    [
        "context_length_exceeded",
        "maximum context length",
        "reduce the length of the messages",
        "prompt is too long",
        "exceeds the maximum number of tokens",
        "exceeds the available context size",
        "exceeds the context window",
    ],
)
def test_markers_of_a_request_that_is_too_long(marker: str) -> None:
    assert type(answer(400, f"Sorry, THE REQUEST {marker.upper()} here")) is ContextOverflowError
    assert type(answer(500, f"it {marker}")) is ContextOverflowError
    # In any part of the body, but with no other status.
    assert type(classify(400, {}, json.dumps({"trace": marker}).encode())) is ContextOverflowError
    assert type(answer(404, f"it {marker}")) is ModelNotFoundError
    assert type(answer(502, f"it {marker}")) is ServerError


@pytest.mark.parametrize(
    ("err", "kind"),
    [
        (answer(400, "ThrottlingException: Too many tokens for the maximum context length"), RateLimitedError),
        (answer(413, "Limit 6000 tokens per minute", code="rate_limit_exceeded"), RateLimitedError),
        (answer(429, "maximum context length"), RateLimitedError),
        (answer(400, "Your credit balance is too low to access the API."), BillingError),
        (answer(403, "no", code="insufficient_quota"), BillingError),
        (answer(400, "no", code="model_not_found"), ModelNotFoundError),
        (answer(400, "no", code="content_filter"), BlockedError),
        (answer(401, "no", type="invalid_request_error", code="invalid_api_key"), AuthError),
        (answer(400, "no", status="INVALID_ARGUMENT", details=[1, {"reason": "API_KEY_INVALID"}]), AuthError),
        (answer(404, "no", type="invalid_request_error"), ModelNotFoundError),
        (answer(500, "no", status="RESOURCE_EXHAUSTED"), RateLimitedError),
        (answer(500, "no", type="overloaded_error"), OverloadedError),
        (answer(400, "You have reached your specified API usage limits. Come back on 2026-02-01."), BillingError),
        (answer(403, "no", metadata={"reasons": ["violence"], "flagged_input": "x"}), BlockedError),
        (answer(403, 'Your model requires moderation and your input was flagged for "x"'), BlockedError),
        (answer(403, "no", metadata={"reasons": []}), AuthError),
        (answer(403, "no", metadata="odd"), AuthError),
        (answer(400, "no", code="moderation_blocked"), BlockedError),
        (answer(413, "image exceeds 5 MB maximum", type="invalid_request_error"), InvalidRequestError),
        (answer(413, "image prompt is long", type="request_too_large"), ContextOverflowError),
        (answer(413, "too large", type="invalid_request_error"), ContextOverflowError),
        (answer(500, "rate limit: prompt is too long", code="rate_limit_exceeded"), RateLimitedError),
        (answer(302), InvalidRequestError),
        (answer(405), InvalidRequestError),
    ],
)
def test_words_and_statuses(err: ProviderError, kind: type[ProviderError]) -> None:
    assert type(err) is kind


@pytest.mark.parametrize("status", [501, 505, 520, 524, 599])
def test_other_failures_of_a_server_are_final(status: int) -> None:
    err = answer(status)
    assert type(err) is ServerError
    assert not err.retryable


@pytest.mark.parametrize(
    ("payload", "kind", "retryable"),
    [
        ({"error": {"code": 502, "message": "m"}}, ServerError, True),
        ({"error": {"code": "503", "message": "m"}}, OverloadedError, True),
        ({"error": {"code": 400, "message": "m"}}, InvalidRequestError, False),
        ({"error": {"code": "server_error", "message": "quota used up"}}, ServerError, True),
        *(
            ({"error": {"code": code, "message": "m"}}, InvalidRequestError, False)
            for code in (
                "data_residency_mismatch",
                "failed_to_download_image",
                "image_file_not_found",
                "invalid_image_mode",
                "unsupported_value",
            )
        ),
        ({"error": {"code": "context_length_exceeded", "message": "m"}}, ContextOverflowError, False),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}, OverloadedError, True),
        ({"type": "error", "error": {"type": "authentication_error", "message": "m"}}, AuthError, False),
        ({"type": "error", "error": {"type": "timeout_error", "message": "m"}}, ProviderTimeoutError, True),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "m"}}, InvalidRequestError, False),
        ([{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "m"}}], RateLimitedError, True),
        ({"object": "error", "message": "m", "code": 404}, ModelNotFoundError, False),
        ({"error": "m"}, ServerError, True),
        ({"message": "m"}, ServerError, True),
        ({"detail": [{"msg": "m"}]}, ServerError, True),
        (None, ServerError, True),
        (17, ServerError, True),
    ],
)
def test_errors_inside_a_stream(payload: Any, kind: type[ProviderError], retryable: bool) -> None:
    err = classify_payload(payload)
    assert type(err) is kind
    assert err.retryable is retryable


def test_the_services_own_words_reach_the_user() -> None:
    assert "mine answered with HTTP 400: max_tokens is too large" in str(answer(400, "max_tokens is too large"))
    assert "plain words" in str(classify(500, {}, b"plain words"))
    assert '{"odd": 1}' in str(classify(500, {}, b'{"odd": 1}'))
    assert "behind it" in str(answer(502, "Provider returned error", metadata={"raw": "behind it"}))
    assert "no message" in str(classify(500, {}, b""))


def test_a_web_page_is_named_and_not_quoted() -> None:
    page = b"<!DOCTYPE html><html><head><title>Sign  in</title></head><body>lots of text</body></html>"
    err = classify(502, {"content-type": "text/html"}, page, settings=SETTINGS)
    assert "a web page (Sign in)" in str(err)
    assert "lots of text" not in str(err)


def test_long_messages_are_cut() -> None:
    message = answer(400, "long " * 1000).message
    assert len(message) < MESSAGE_LIMIT + 50
    assert message.endswith("…")


def test_the_key_is_masked_where_the_service_repeats_it() -> None:
    for err in (
        answer(401, f"Incorrect API key provided: {KEY}."),
        classify(401, {}, f"key {KEY} refused".encode(), settings=SETTINGS),
        classify_payload({"error": f"bad key {KEY}"}, settings=SETTINGS),
    ):
        assert KEY not in str(err)
        assert "***" in str(err)


def test_placeholder_keys_leave_messages_readable() -> None:
    settings = ProviderSettings("local", "openai_compatible", api_key="x")
    assert "max_tokens exceeded" in str(classify(400, {}, b"max_tokens exceeded", settings=settings))


def test_hints_say_what_to_check() -> None:
    assert "OPENAI_API_KEY" in answer(401).hint
    assert "[providers.mine]" in answer(401).hint
    assert "api_base in [providers.mine]" in answer(404).hint
    assert "env_var or api_key in the provider's entry" in classify(401, {}, b"").hint


def test_the_hint_for_a_request_without_a_key() -> None:
    keyless = ProviderSettings("mine", "openai", api_base="https://gateway.example/v1")
    hint = classify(401, {}, b"", settings=keyless).hint
    assert hint == "no key was sent: set env_var or api_key in [providers.mine]"
    hint = classify(401, {}, b"", settings=keyless, key_variable="OPENAI_API_KEY").hint
    assert "OPENAI_API_KEY goes to its own service only" in hint
    assert 'env_var = "OPENAI_API_KEY" in [providers.mine]' in hint


def test_waits_in_headers_and_bodies() -> None:
    assert answer(429, headers={"retry-after": "12"}).retry_after_secs == 12
    assert answer(429, headers={"retry-after-ms": "250"}).retry_after_secs == 0.25
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7.5s"}
    assert answer(429, details=[{"retryDelay": 3}, info], headers={"retry-after": "12"}).retry_after_secs == 7.5
    assert answer(429, details="odd").retry_after_secs is None


@pytest.mark.parametrize("body", [b"[" * 100_000, b"\xff\xfe", b"null", b"[]", b'"text"', b'{"error": null}'])
def test_bodies_of_no_known_shape(body: bytes) -> None:
    assert type(classify(500, {}, body)) is ServerError


@pytest.mark.parametrize("code", ["4" * 5000, "²²²", "4 0 0", "529 "])
def test_codes_that_are_no_status(code: str) -> None:
    err = classify_payload({"error": {"type": "overloaded_error", "code": code, "message": "come back"}})
    assert isinstance(err, OverloadedError) and "come back" in str(err)


@pytest.mark.parametrize("key", ['sk-"quoted"-5f0c', "sk-back\\slash-5f0c", "sk-schlüssel-5f0c"])
def test_the_key_is_masked_in_every_form_that_json_gives_it(key: str) -> None:
    settings = ProviderSettings("mine", "openai", api_key=key)
    quoted = json.dumps({"key": key})
    for body in ({"x": key}, {"errors": [key]}, {"detail": {"key": key}}, {"x": quoted}, {"x": json.dumps([quoted])}):
        for text in (json.dumps(body), json.dumps(body, ensure_ascii=False)):
            told = str(classify(401, {}, text.encode(), settings=settings))
            assert "***" in told
            assert not any(part in told for part in ("quoted", "slash", "schl"))


@pytest.mark.parametrize("key", ["ab+/5f0c==", "sk-back\\\\slash-5f0c", "sk-schlüssel-\U0001f511", "sk \ud83d 5f0c"])
def test_the_key_is_masked_as_any_writer_of_json_and_of_addresses_may_write_it(key: str) -> None:
    settings = ProviderSettings("mine", "openai", api_key=key)
    units = key.encode("utf-16-be", "surrogatepass")
    numbers = "".join(rf"\u{unit:04X}" for unit in struct.unpack(f">{len(units) // 2}H", units))
    forms = [json.dumps(key)[1:-1].replace("/", r"\/"), numbers, numbers.lower(), json.dumps(numbers)[1:-1]]
    if "\ud83d" not in key:  # half of a character is in no address
        forms += [quote(key), quote_plus(key, safe=" "), quote(key, safe="").lower()]
    assert [mask_secrets(f"<{form}>", settings) for form in forms] == ["<***>"] * len(forms)


def test_masking_takes_no_longer_for_text_that_is_made_for_it() -> None:
    settings = ProviderSettings("mine", "openai", api_key="\\" * 12 + "a\\b\\c" * 10)
    for text in ("\\" * 10_000_000, "\\u005c" * 100_000, ("\\" * 12 + "a\\b\\") * 10_000):
        classify_payload({"error": {"message": text}}, settings=settings)


def test_what_stands_in_basic_credentials_is_masked() -> None:
    value = "Basic " + b64encode(b"someone:hunter-5f0c").decode()
    options = SimpleNamespace(extra_headers={"authorization": value})
    settings = ProviderSettings("mine", "openai", options=options)
    err = classify(401, {}, b'{"error": "hunter-5f0c is no password of someone:hunter-5f0c"}', settings=settings)
    assert "*** is no password of ***" in err.message


def test_a_model_without_tools_has_a_way_out() -> None:
    err = classify(400, {}, b'{"error": {"message": "llama3.2:latest does not support tools"}}', settings=SETTINGS)
    assert isinstance(err, InvalidRequestError) and "tools = false in [providers.mine]" in err.hint
