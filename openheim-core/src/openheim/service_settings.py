"""Settings that every provider has whose service is reached over HTTP, as a model for plugins to build on."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from openheim.jsontext import wire_bytes

__all__ = ("ServiceSettings",)


#: Headers about the connection, about where it leads (api_base says that), and about where the body ends: two answers
#: to that are an attack (RFC 9112, 6.3).
_FRAMING = frozenset(
    (
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    )
)


class ServiceSettings(BaseModel):
    """The base of such a plugin's ``Settings``.

    Attributes:
        reserved: fields of a request that the plugin writes itself, so that ``extra_body`` may not hold them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    reserved: ClassVar[frozenset[str]] = frozenset()

    # May hold keys, so they are not shown.
    extra_headers: dict[str, str] = Field(default_factory=dict, repr=False, description="Headers of every request.")
    extra_body: dict[str, Any] = Field(default_factory=dict, description="Fields of every request for a reply.")

    @field_validator("extra_headers")
    @classmethod
    def _lower_case_names(cls, headers: dict[str, str]) -> dict[str, str]:
        headers = {name.lower(): value for name, value in headers.items()}
        if framing := sorted(_FRAMING & headers.keys()):
            raise ValueError(
                f"{', '.join(framing)} cannot be set here, since openheim writes what says how a request is sent"
            )
        return headers

    @field_validator("extra_body")
    @classmethod
    def _nothing_reserved(cls, body: dict[str, Any]) -> dict[str, Any]:
        if reserved := sorted(cls.reserved & body.keys()):
            raise ValueError(f"{', '.join(reserved)} cannot be set here, since openheim writes it itself")
        for name, value in body.items():
            try:
                wire_bytes(value)
            except (ValueError, TypeError, RecursionError) as err:
                raise ValueError(f"{name} has no form in JSON: {err}") from err
        return body
