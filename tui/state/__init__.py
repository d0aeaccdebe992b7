"""What the user chose and requested, and what of it is saved."""
