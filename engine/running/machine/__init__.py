"""GPUs, processors and memory of this machine. Knows nothing of learning."""
