"""Settings: where they are, how they are read, checked and changed."""
