"""The demo provider under the suite that every provider has to pass."""

from __future__ import annotations

from openheim.testing import ProviderContract


class TestDemo(ProviderContract):
    plugin = "openheim_provider_demo.plugin"
    name = "demo"
    tool_prompt = "What is in this directory?"
    reports_usage = True
