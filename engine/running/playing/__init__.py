"""A person at play, turn by turn, whose episodes are recorded."""
