"""Devices, memory and processors of this machine. Knows nothing of learning."""
