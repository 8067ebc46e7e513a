"""``python -m openheim`` is the same program as ``openheim``."""

from openheim.cli import main

if __name__ == "__main__":
    main()
