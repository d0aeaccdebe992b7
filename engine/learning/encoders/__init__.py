"""Encoders of images and sets of entities."""
