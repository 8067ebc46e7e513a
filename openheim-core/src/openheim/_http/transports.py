"""Which kind of connection leads to an origin."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from openheim._http.proxies import proxy_for
from openheim._http.tls import tls_context

if TYPE_CHECKING:
    from collections.abc import Callable

    from openheim._http.message import Resolve, Target, Transport

__all__ = ("transport_factory",)


def transport_factory(
    target: Target, *, proxy: str | None, ca_file: str | None, resolve: Resolve | None, keep_secs: float
) -> Callable[[], Transport]:
    """What makes transports to the origin of ``target``, each for one connection that is kept for ``keep_secs``.

    Args:
        resolve: for connections that no proxy makes; see :class:`~openheim.http.HttpClient`.

    Raises:
        ConfigError: the proxy or the certificate authorities cannot be used.
    """
    via = proxy_for(target.scheme, target.host, target.port, proxy)
    with_tls = target.scheme == "https" or (via is not None and via.startswith("https:"))
    context = tls_context(ca_file) if with_tls else None
    if via is None:
        from openheim._http.direct import DirectTransport

        return partial(DirectTransport, target, context, keep_secs, resolve)
    from openheim._http.proxied import ProxiedTransport

    return partial(ProxiedTransport, via, context, keep_secs)
