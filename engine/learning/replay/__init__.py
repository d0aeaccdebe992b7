"""The replay buffer."""
