"""Starts, supervises, saves. The only part with threads and files."""
