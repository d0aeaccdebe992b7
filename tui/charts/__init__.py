"""Braille charts and sparklines as pure functions."""
