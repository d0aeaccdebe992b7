"""Learning from demonstrations to act as they do."""
