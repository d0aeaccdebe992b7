"""Saved policies play against each other, and are rated by their results."""
