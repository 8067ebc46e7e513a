from openheim.testing import ToolsetContract


class TestShout(ToolsetContract):
    plugin = "acme_openheim_shout.plugin"
    sample_calls = {"shout": {"text": "hello"}}
