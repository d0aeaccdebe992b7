"""Warnings about what may be wrong with a run."""
