"""Self-play: earlier policies as opponents, their ratings, and whose turn it is to learn (ML-Agents' ghost trainer)."""
