import pydantic  # noqa: F401  the fault of this plugin
from kit_toolsets import good  # noqa: F401  its entry point names it here
