"""What turns one observation into features."""
