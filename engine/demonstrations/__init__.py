"""Recorded episodes to imitate: read from .demo files, and written to them."""
