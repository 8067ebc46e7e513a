"""Whom to trust when TLS is spoken."""

from __future__ import annotations

import os
import ssl
from functools import lru_cache

from openheim.errors import ConfigError

__all__ = ("tls_context",)


def tls_context(ca_file: str | None) -> ssl.SSLContext:
    """A context that trusts the authorities in this file, else in ``SSL_CERT_FILE``, ``SSL_CERT_DIR``, or the usual.

    Raises:
        ConfigError: they cannot be read.
    """
    return _make_tls_context(ca_file or os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@lru_cache(maxsize=8)
def _make_tls_context(ca_file: str | None, ca_dir: str | None) -> ssl.SSLContext:
    # One for the whole process: making it takes 30 ms and most of a megabyte.
    try:
        if ca_file:
            context = ssl.create_default_context(cafile=os.path.expanduser(ca_file))
        elif ca_dir:
            context = ssl.create_default_context(capath=ca_dir)
        else:
            import certifi

            context = ssl.create_default_context(cafile=certifi.where())
    except OSError as err:
        raise ConfigError(
            f"cannot read certificate authorities from {ca_file or ca_dir}: {err.strerror or err}",
            hint="check ca_file in [http] and SSL_CERT_FILE; it is a file in PEM form",
        ) from err
    context.set_alpn_protocols(["http/1.1"])
    return context
