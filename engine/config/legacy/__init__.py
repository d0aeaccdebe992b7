"""Files of older versions of ML-Agents, read as today's."""
