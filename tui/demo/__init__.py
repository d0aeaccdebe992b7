"""A made-up run that obeys like a real one, to try every key on."""
