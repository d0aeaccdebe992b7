"""Trains game and robot agents from a YAML file, in a terminal."""
