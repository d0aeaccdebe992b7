"""Files of older versions of ML-Agents, read as what they mean today."""
