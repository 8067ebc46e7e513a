import socket

from kit_toolsets import good  # noqa: F401  its entry point names it here

print("hello from a plugin")  # noqa: T201  the fault of this plugin
with socket.socket() as listener:
    listener.bind(("127.0.0.1", 0))
