"""What :mod:`openheim.http` is made of: addresses, proxies, connections. Imported when the first request is made."""
