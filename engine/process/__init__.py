"""The process that rl-tui runs in. Knows nothing else of the engine."""
