"""Subscribers of the bus that write somewhere."""
