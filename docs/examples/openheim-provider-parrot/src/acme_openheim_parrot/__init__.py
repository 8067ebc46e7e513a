"""A provider for openheim that repeats what it is told."""
