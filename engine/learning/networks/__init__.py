"""Networks from observations to actions and values."""
