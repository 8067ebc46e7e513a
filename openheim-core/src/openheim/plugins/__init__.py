"""How plugins are found, chosen, loaded and called. Four owners of one job, each in a module of its own:

- ``catalogue``: ``importlib.metadata`` finds what is installed, in one scan that imports nothing;
- ``policy``: the settings pick one winner per kind and name (enabled, preferred, compatible);
- ``loading``: stevedore imports the winner, and nothing else;
- ``host``: pluggy checks it against ``hookspecs`` and calls it.

``docs/explanation/plugin-loading.md`` says why. This package imports none of them by itself: listing plugins must not
pay for loading them.
"""

from __future__ import annotations

__all__ = ()
