"""Errors about one request, in our terms."""

from __future__ import annotations

import errno
import os
import re
import ssl
from typing import TYPE_CHECKING

import httpcore

from openheim.errors import ProviderConnectionError, ProviderError, ProviderTimeoutError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openheim._http.message import Target

__all__ = ("RequestErrors",)


class RequestErrors:
    """Turns the library's errors about one request into ours. Neither user, query nor headers get into a message."""

    __slots__ = ("_target", "_timeout_secs")

    def __init__(self, target: Target, timeout_secs: float) -> None:
        self._target = target
        self._timeout_secs = timeout_secs

    def translate(self, err: BaseException) -> ProviderError | None:
        """Our error, or None for one that is no fault of the connection."""
        if type(err).__module__.partition(".")[0] == "httpx" and err.__cause__ is not None:
            # Through a proxy, httpx makes errors of its own of those of httpcore.
            err = err.__cause__
        if type(err).__module__.partition(".")[0] == "h11" or isinstance(err, httpcore.LocalProtocolError):
            return ProviderConnectionError(
                f"the request to {self._target.origin} cannot be sent: {_reason(err)}",
                hint="check extra_headers",
                retryable=False,
            )
        match err:
            case ProviderError():
                return err
            case httpcore.ConnectTimeout():
                return _unsent(
                    ProviderTimeoutError(
                        f"no connection to {self._target.origin} within {self._timeout_secs:g} s",
                        hint="check network, proxy and api_base",
                    )
                )
            case httpcore.TimeoutException():
                return ProviderTimeoutError(
                    f"nothing came from {self._target.origin} for {self._timeout_secs:g} s",
                    hint="timeout_secs of the provider sets this limit",
                )
            case httpcore.ConnectError() | httpcore.ProxyError() | UnicodeError():
                return _unsent(self._unconnected(err))
            case httpcore.NetworkError() | httpcore.ProtocolError() | OSError():
                return ProviderConnectionError(f"the connection to {self._target.origin} broke: {_reason(err)}")
        return None

    def shown_cause(self, err: BaseException) -> BaseException | None:
        """``err``, to be named as the cause of its translation; None if its own words may quote the other side."""
        quotes = isinstance(err, httpcore.ProtocolError | httpcore.ProxyError)
        return None if quotes or type(err).__module__.partition(".")[0] in _QUOTING else err

    def _unconnected(self, err: BaseException) -> ProviderError:
        for cause in _causes(err):
            if isinstance(cause, ssl.SSLCertVerificationError):
                return ProviderConnectionError(
                    f"the certificate of {self._target.origin} is not trusted: {cause.verify_message}",
                    hint="if a proxy opens TLS here, set ca_file in [http], or SSL_CERT_FILE, to its authority",
                    retryable=False,
                )
            if isinstance(cause, ssl.SSLError) and cause.reason in _NO_TLS:
                return ProviderConnectionError(
                    f"{self._target.origin} does not speak TLS",
                    hint="if it is a server without it, its address begins with http://",
                    retryable=False,
                )
        return ProviderConnectionError(
            f"no connection to {self._target.origin}: {_reason(err)}", hint="check network, proxy and api_base"
        )


def _unsent(error: ProviderError) -> ProviderError:
    error.unsent = True
    return error


def _causes(err: BaseException) -> Iterator[BaseException]:
    """``err`` and what led to it, outermost first."""
    current: BaseException | None = err
    while current is not None:
        yield current
        if isinstance(current, BaseExceptionGroup):
            current = current.exceptions[0]
        else:
            current = current.__cause__ or current.__context__


#: What OpenSSL says of an answer that is no TLS at all; which of them depends on its version and on the answer.
_NO_TLS = frozenset(("WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL", "PACKET_LENGTH_TOO_LONG", "HTTP_REQUEST"))

#: Libraries whose errors about what came quote it.
_QUOTING = frozenset(("h11", "httpx"))

#: In their words, what comes from the other side stands behind one of these. It may hold a key.
_QUOTED = re.compile(r"""\bb?['"].*|\bbytearray\b.*|:(?! chunked is supported$).*""", re.DOTALL)


def _reason(err: BaseException) -> str:
    """The system's words for what happened where there are some, else the library's, without what they quote."""
    reason = _QUOTED.sub("", str(err)).strip() or type(err).__name__
    if isinstance(err, httpcore.ProxyError) and (status := re.match("[0-9]{3}", reason)):
        reason = f"the proxy answered with HTTP {status[0]}"
    for cause in _causes(err):
        if isinstance(cause, OSError) and cause.strerror:
            # asyncio puts words of its own, with the address, in place of the system's.
            replaced = cause.errno in errno.errorcode and cause.strerror.startswith("Connect call failed")
            reason = os.strerror(cause.errno) if replaced and cause.errno else cause.strerror
    return reason.rstrip(".").lower()
