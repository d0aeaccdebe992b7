"""The files of runs: written, found and read. No torch, no threads, no learning."""
