"""Lessons and randomization of environments: when a lesson ends, and which values hold."""
