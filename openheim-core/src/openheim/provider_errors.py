"""What went wrong, from the answer of a model service: one error class per cause, whatever the wire.

Services disagree about statuses, so the codes and types that they put into the body count too, and for a few causes
that have no code, the text. The order is: words that leave no doubt (credit used up, throttled, too long), then
the status, then the general words. Throttling comes before length, since its messages speak of "too many tokens" too.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from openheim.errors import (
    AuthError,
    BillingError,
    BlockedError,
    ConflictError,
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

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from openheim.providers import ProviderSettings

__all__ = ("MESSAGE_LIMIT", "classify", "classify_payload")

#: Characters of a service's own message that are passed on.
MESSAGE_LIMIT = 500

#: Statuses that say nothing against sending the same request again. Other errors of the server are final.
RETRY_STATUSES = frozenset((408, 409, 429, 500, 502, 503, 504, 529))

_BY_STATUS: dict[int, type[ProviderError]] = {
    401: AuthError,
    402: BillingError,
    403: AuthError,
    404: ModelNotFoundError,
    408: ProviderTimeoutError,
    409: ConflictError,
    413: ContextOverflowError,
    429: RateLimitedError,
    503: OverloadedError,
    504: ProviderTimeoutError,
    529: OverloadedError,
}

#: Codes and types that decide, whatever the status. Compared in lower case.
_DECISIVE: dict[str, type[ProviderError]] = {
    "insufficient_quota": BillingError,
    "billing_error": BillingError,
    "billing_hard_limit_reached": BillingError,
    "insufficient_balance": BillingError,
    "insufficient_credits": BillingError,
    "payment_required": BillingError,
    "rate_limit_error": RateLimitedError,
    "rate_limit_exceeded": RateLimitedError,
    "resource_exhausted": RateLimitedError,
    "too_many_requests": RateLimitedError,
    "throttlingexception": RateLimitedError,
    "overloaded_error": OverloadedError,
    "context_length_exceeded": ContextOverflowError,
    "model_context_window_exceeded": ContextOverflowError,
    "request_too_large": ContextOverflowError,
    "model_not_found": ModelNotFoundError,
    "invalid_api_key": AuthError,
    "api_key_invalid": AuthError,
    "content_filter": BlockedError,
    "content_policy_violation": BlockedError,
    "image_content_policy_violation": BlockedError,
    "misalignment_policy_violation": BlockedError,
    "bio_policy": BlockedError,
    "moderation_blocked": BlockedError,
}

#: Codes and types that decide where there is no status of an error, as inside a stream.
_GENERAL: dict[str, type[ProviderError]] = {
    "authentication_error": AuthError,
    "permission_error": AuthError,
    "permission_denied": AuthError,
    "unauthenticated": AuthError,
    "not_found_error": ModelNotFoundError,
    "not_found": ModelNotFoundError,
    "invalid_request_error": InvalidRequestError,
    "invalid_argument": InvalidRequestError,
    "invalid_request": InvalidRequestError,
    "invalid_value": InvalidRequestError,
    "unsupported_value": InvalidRequestError,
    "unsupported_parameter": InvalidRequestError,
    "unknown_parameter": InvalidRequestError,
    "missing_required_parameter": InvalidRequestError,
    "failed_precondition": InvalidRequestError,
    "badrequesterror": InvalidRequestError,
    "timeout_error": ProviderTimeoutError,
    "deadline_exceeded": ProviderTimeoutError,
    "unavailable": OverloadedError,
    "overloaded": OverloadedError,
    "server_overloaded": OverloadedError,
    "server_is_overloaded": OverloadedError,
    "slow_down": OverloadedError,
    "invalid_prompt": InvalidRequestError,
    "invalid_image": InvalidRequestError,
    "invalid_image_format": InvalidRequestError,
    "invalid_base64_image": InvalidRequestError,
    "invalid_image_url": InvalidRequestError,
    "image_too_large": InvalidRequestError,
    "image_too_small": InvalidRequestError,
    "image_parse_error": InvalidRequestError,
    "image_file_too_large": InvalidRequestError,
    "unsupported_image_media_type": InvalidRequestError,
    "empty_image_file": InvalidRequestError,
    "invalid_image_mode": InvalidRequestError,
    "failed_to_download_image": InvalidRequestError,
    "image_file_not_found": InvalidRequestError,
    "data_residency_mismatch": InvalidRequestError,
}

_BILLING_TEXTS = ("credit balance is too low", "reached your specified api usage limits")

_THROTTLE_TEXTS = ("throttlingexception", "rate limit", "too many requests", "tokens per minute", "requests per minute")

#: Characters of a message that are looked through for secrets; those behind them are not shown.
_MASKED_LIMIT = 64 * 1024

#: Parts of messages of services that have no code for a request that is too long.
_OVERFLOW_TEXTS = (
    "context_length_exceeded",
    "maximum context length",
    "reduce the length of the messages",
    "prompt is too long",
    "exceeds the maximum number of tokens",
    "exceeds the available context size",
    "exceeds the context window",
    "exceed context limit",
    "exceeds context window",
    "exceeded model token limit",
    "context window exceeds limit",
    "context size has been exceeded",
    "greater than the context length",
    "maximum prompt length",
    "input is too long for requested model",
    "prompt token count",
    "`inputs` tokens + `max_new_tokens` must be",
)


def classify(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    now: datetime | None = None,
    *,
    settings: ProviderSettings | None = None,
    key_variable: str = "",
) -> ProviderError:
    """The error that an answer stands for: one with a status other than 2xx, or a 200 that is no answer of a model.

    Args:
        status: HTTP status.
        headers: with names in lower case; ``retry-after`` and ``retry-after-ms`` are read.
        body: its beginning is enough.
        now: with a time zone; the current time if left out.
        settings: the entry that was asked; named in messages, where its secrets are masked that the service repeats.
        key_variable: environment variable that usually holds the key, for the hint about a key that was refused or
            is missing.
    """
    payload, text = _read_body(headers, body)
    error = classify_payload(payload, status=status, body=text, settings=settings, key_variable=key_variable)
    if error.retry_after_secs is None:
        error.retry_after_secs = _asked_wait(headers, now)
    return error


def classify_payload(
    payload: Any,
    *,
    status: int = 200,
    body: str = "",
    settings: ProviderSettings | None = None,
    key_variable: str = "",
) -> ProviderError:
    """The error that a decoded error object stands for, such as one that comes inside a stream.

    Args:
        payload: the object, with or without the ``error`` around it; anything else is taken for an unknown error.
        status: HTTP status of the answer. A number in the object's ``code`` counts in place of a 200.
        body: the text that the object was read from: shown when it has no message, and searched as well.
        settings, key_variable: see :func:`classify`.
    """
    details = _details(payload)
    said = _message(details) or body
    words = [word.lower() for key in ("code", "type", "status") if isinstance(word := details.get(key), str)]
    words += _reasons(details)
    if _is_flagged(details, said.lower()):
        words.append("content_filter")
    effective = status if status >= 300 else _status_in(details, status)
    kind = _kind(effective, words, said.lower(), body.lower())
    name = (settings.name if settings is not None else "") or "the service"
    code = f" with HTTP {effective}" if effective >= 300 else ""
    said = _bounded(mask_secrets(" ".join(said.split())[:_MASKED_LIMIT], settings))
    return kind(
        f"{name} answered{code}: {said}" if said else f"{name} answered{code or ' with an error'} and no message",
        hint=_hint(kind, effective, said.lower(), settings, key_variable),
        status=status,
        retry_after_secs=_wait_in(details),
        retryable=_is_retryable(kind, effective, is_page=payload is None and bool(body)),
    )


def _kind(status: int, words: list[str], said: str, body: str) -> type[ProviderError]:
    named = [_DECISIVE[word] for word in words if word in _DECISIVE]
    for kind in (BillingError, RateLimitedError, OverloadedError):
        if kind in named:
            return kind
    # Bad requests, and errors inside a stream: only their texts tell them apart.
    vague = status < 300 or status in (400, 413, 422)
    if vague and any(mark in said for mark in _BILLING_TEXTS):
        return BillingError
    if vague and any(mark in said for mark in _THROTTLE_TEXTS):
        return RateLimitedError
    if named:
        return named[0]
    if (status < 300 or status in (400, 500)) and any(mark in said or mark in body for mark in _OVERFLOW_TEXTS):
        return ContextOverflowError
    if status == 413 and "image" in said and "invalid_request_error" in words:
        return InvalidRequestError  # The picture is too large: a shorter conversation would still hold it.
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= 500:
        return ServerError
    if status >= 300:
        return InvalidRequestError
    return next((_GENERAL[word] for word in words if word in _GENERAL), ServerError)


def _is_retryable(kind: type[ProviderError], status: int, *, is_page: bool) -> bool:
    if is_page and status < 300:
        return False  # A web page in place of an answer is a wrong address or a sign-in page, and stays one.
    if kind is ServerError and status >= 300:
        return status in RETRY_STATUSES
    return kind.retryable


def _hint(
    kind: type[ProviderError], status: int, said: str, settings: ProviderSettings | None, key_variable: str
) -> str:
    entry = f"[providers.{settings.name}]" if settings is not None and settings.name else "the provider's entry"
    if kind is AuthError:
        if settings is not None and not settings.api_key:
            return _hint_without_key(entry, key_variable)
        key = f"{key_variable}, or env_var and api_key" if key_variable else "env_var or api_key"
        return f"check the key: {key} in {entry}"
    if kind is InvalidRequestError and "does not support tools" in said:
        return f"use a model that can call tools, or set tools = false in {entry}"
    if kind is BillingError:
        return "check credit and plan with the service"
    if kind is ModelNotFoundError:
        return f"check the model's name, and api_base in {entry}"
    if kind is ContextOverflowError:
        return "start a new session, or use a model with a larger window"
    if kind is InvalidRequestError and (status in (405, 501) or status < 400):
        return f"check api_base in {entry}"
    if kind is ServerError and status < 300:
        return f"if it stays so, check api_base in {entry}"
    return ""


def _hint_without_key(entry: str, key_variable: str) -> str:
    if not key_variable:
        return f"no key was sent: set env_var or api_key in {entry}"
    # As in openheim.config.secrets.key_variable: nothing else would have kept it back.
    return (
        f"no key was sent: {key_variable} goes to its own service only; to send it here too, write "
        f'env_var = "{key_variable}" in {entry}'
    )


# --- reading what the service sent ---


def _read_body(headers: Mapping[str, str], body: bytes) -> tuple[Any, str]:
    """The decoded body, or None, and its text (of a web page only what it is)."""
    text = body.decode("utf-8", "replace").strip()
    try:
        return json.loads(text), text
    except (ValueError, RecursionError):
        pass
    if "html" in headers.get("content-type", "") or text[:100].lower().startswith(("<!doctype html", "<html")):
        title = re.search(r"<title[^>]*>(.{1,200}?)</title>", text, re.IGNORECASE | re.DOTALL)
        return None, "a web page" + (f" ({title[1].strip()})" if title else "")
    return None, text


def _details(payload: Any) -> dict[str, Any]:
    """The innermost object that describes the error."""
    if isinstance(payload, list) and payload:
        payload = payload[0]  # Gemini wraps errors of streams in a list.
    if not isinstance(payload, dict):
        return {"message": payload} if isinstance(payload, str) else {}
    error = payload.get("error")
    if isinstance(error, dict):
        return error
    if isinstance(error, str):
        return {**payload, "message": payload.get("message") or error}
    return payload


def _message(details: Mapping[str, Any]) -> str:
    for key in ("message", "detail", "error_description", "errors"):
        value = details.get(key)
        if isinstance(value, str) and value.strip():
            return value + _upstream_message(details)
        if value and key != "message":
            return json.dumps(value, ensure_ascii=False)
    return ""


def _upstream_message(details: Mapping[str, Any]) -> str:
    """What the service behind a router said, which the router's own message often leaves out."""
    metadata = details.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    return f" ({raw})" if isinstance(raw, str) and raw.strip() else ""


def _status_in(details: Mapping[str, Any], status: int) -> int:
    code = details.get("code")
    if isinstance(code, str) and re.fullmatch("[0-9]{3}", code):
        code = int(code)
    return code if isinstance(code, int) and 300 <= code < 600 else status


def _reasons(details: Mapping[str, Any]) -> list[str]:
    """The reasons in ``google.rpc.ErrorInfo``: a key that is not valid is no more than a bad request otherwise."""
    items = details.get("details")
    reasons = [item.get("reason") for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return [reason.lower() for reason in reasons if isinstance(reason, str)]


def _is_flagged(details: Mapping[str, Any], said: str) -> bool:
    """Whether a router's moderation stopped the request, which it reports as if the key were refused."""
    metadata = details.get("metadata")
    reasons = metadata.get("reasons") if isinstance(metadata, dict) else None
    return (isinstance(reasons, list) and bool(reasons)) or ("requires moderation" in said and "flagged" in said)


def _wait_in(details: Mapping[str, Any]) -> float | None:
    """The wait in ``google.rpc.RetryInfo``, such as ``"retryDelay": "7.5s"``."""
    items = details.get("details")
    for item in items if isinstance(items, list) else ():
        delay = item.get("retryDelay") if isinstance(item, dict) else None
        match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]+)?)s", delay) if isinstance(delay, str) else None
        if match:
            return float(match[1])
    return None


def _asked_wait(headers: Mapping[str, str], now: datetime | None) -> float | None:
    from datetime import UTC, datetime

    from openheim.retry import retry_after_secs

    return retry_after_secs(headers, now or datetime.now(UTC))


def _bounded(text: str) -> str:
    return text if len(text) <= MESSAGE_LIMIT else f"{text[: MESSAGE_LIMIT - 1]}…"
