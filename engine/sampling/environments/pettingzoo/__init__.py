"""Environments of PettingZoo: several agents, which act at once or in turns."""
