"""Files of a run. No torch, no threads, no learning."""
