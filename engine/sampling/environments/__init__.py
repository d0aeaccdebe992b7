"""From the name of an environment to columns of steps."""
