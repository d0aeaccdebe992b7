"""Behavioral cloning as a trainer of its own."""
