"""From the bytes of a terminal to commands."""
