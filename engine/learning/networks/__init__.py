"""What maps observations to actions and values."""
