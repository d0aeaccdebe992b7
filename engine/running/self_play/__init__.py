"""Self-play in a run: who learns, who plays against whom, and what their games were worth."""
