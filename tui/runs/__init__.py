"""Recorded runs: listed, compared and replayed."""
