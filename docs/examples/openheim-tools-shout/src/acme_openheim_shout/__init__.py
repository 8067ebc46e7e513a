"""A toolset for openheim that shouts."""
