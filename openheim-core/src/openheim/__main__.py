"""``python -m openheim`` is the same program as ``openheim``."""

import sys

if __name__ == "__main__":
    # With -m the current directory is searched for modules first; a program that runs in folders of other people's must
    # not import what lies there.
    if not sys.flags.safe_path:
        del sys.path[0]
    from openheim.cli import main

    main()
