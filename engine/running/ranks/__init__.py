"""Several ranks that are one run: rank 0 decides what all do, and in which order."""
