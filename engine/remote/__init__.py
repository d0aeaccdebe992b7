"""A session in another process: its socket, what crosses on it, and both ends."""
