"""The plugins that belong to openheim: which distribution brings which name.

A table, so that a missing package can be named with nothing installed. A name can be spoofed: being listed here says
what a distribution calls itself, not who made it.
"""

from __future__ import annotations

__all__ = ("FIRST_PARTY", "FIRST_PARTY_DISTRIBUTIONS", "distribution_of")

#: Kind to name to distribution.
FIRST_PARTY: dict[str, dict[str, str]] = {
    "providers": {
        "openai": "openheim-provider-openai",
        "openai_compatible": "openheim-provider-openai",
        "anthropic": "openheim-provider-anthropic",
        "gemini": "openheim-provider-gemini",
        "demo": "openheim-provider-demo",
    },
    "embeddings": {
        "openai": "openheim-provider-openai",
        "openai_compatible": "openheim-provider-openai",
        "gemini": "openheim-provider-gemini",
    },
    "tools": {
        "fs": "openheim-tools-fs",
        "shell": "openheim-tools-shell",
        "web": "openheim-tools-web",
        "mcp": "openheim-tools-mcp",
        "delegate": "openheim-tools-delegate",
        "memory": "openheim-memory",
    },
    "transports": {
        "acp": "openheim-acp",
        "serve": "openheim-transport-ws",
        "gateway": "openheim-transport-gateway",
        "web": "openheim-transport-gateway",
        "tui": "openheim-transport-tui",
    },
    "gates": {
        "allow": "openheim-core",
        "ask": "openheim-core",
        "deny": "openheim-core",
    },
}

FIRST_PARTY_DISTRIBUTIONS = frozenset(distribution for names in FIRST_PARTY.values() for distribution in names.values())


def distribution_of(kind: str, name: str) -> str | None:
    """The distribution of openheim's own that brings this plugin, or None."""
    return FIRST_PARTY.get(kind, {}).get(name)
