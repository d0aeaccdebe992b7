"""Algorithms, without threads, files, clocks or events."""
