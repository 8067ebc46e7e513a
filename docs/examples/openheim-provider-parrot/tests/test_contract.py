from openheim.testing import ProviderContract


class TestParrot(ProviderContract):
    plugin = "acme_openheim_parrot.plugin"
    name = "parrot"
    reports_usage = True
