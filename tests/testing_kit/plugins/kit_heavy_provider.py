import httpx  # noqa: F401  the fault of this provider
from kit_providers import Offline


class HeavyProvider(Offline):
    pass
