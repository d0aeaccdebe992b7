"""Where agents live: one file per kind of environment."""
