"""The section ``[tools.web]``."""

from __future__ import annotations

from functools import cached_property

from pydantic import BaseModel, ConfigDict, Field, field_validator

from openheim import ToolError
from openheim_tools_web.exceptions import PrivateHost, parse_private_host
from openheim_tools_web.schemas import MAX_BYTES, TIMEOUT_SECS
from openheim_tools_web.urls import parse_url

__all__ = ("LONGEST_MAX_BYTES", "Settings")

#: The most that ``max_bytes`` may be.
LONGEST_MAX_BYTES = 4 * 1024 * 1024

_PROXY_SCHEMES = ("http", "https", "socks5", "socks5h")


class Settings(BaseModel):
    """See the README of this distribution."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    timeout_secs: float = Field(
        TIMEOUT_SECS, gt=0, le=600, description="Most seconds that a call takes, look-up and all."
    )
    max_bytes: int = Field(
        MAX_BYTES, ge=1024, le=LONGEST_MAX_BYTES, description="Most bytes of a page that are read, decompressed."
    )
    # May hold a password, so it is not shown.
    proxy: str = Field(
        "", repr=False, description="Proxy for web_fetch; none by default, whatever the environment says."
    )
    allow_private: tuple[str, ...] = Field(
        (),
        description="Hosts (localhost:8080) and networks (10.0.0.0/8) that may be fetched though they are not public.",
    )

    @field_validator("allow_private")
    @classmethod
    def _readable(cls, entries: tuple[str, ...]) -> tuple[str, ...]:
        for entry in entries:
            try:
                parse_private_host(entry)
            except ToolError as err:
                raise ValueError(f"{entry!r}: {err}") from None
            except ValueError as err:
                raise ValueError(f"{entry!r} {err}") from None
        return entries

    @field_validator("proxy")
    @classmethod
    def _usable(cls, proxy: str) -> str:
        if not proxy:
            return proxy
        scheme, separator, rest = proxy.rpartition("://")
        if separator and scheme.lower() not in _PROXY_SCHEMES:
            raise ValueError(f"must start with {', '.join(f'{one}://' for one in _PROXY_SCHEMES)}")
        try:
            # User and password may stand before the host.
            parse_url(f"http://{rest.rpartition('@')[2]}")
        except ToolError:
            raise ValueError("is not of the form SCHEME://HOST:PORT") from None
        return proxy

    @cached_property
    def private_hosts(self) -> tuple[PrivateHost, ...]:
        return tuple(parse_private_host(entry) for entry in self.allow_private)
