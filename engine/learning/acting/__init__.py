"""Policies in numpy, which act without torch."""
