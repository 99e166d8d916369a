"""A plan of runs -> folders on disk."""
