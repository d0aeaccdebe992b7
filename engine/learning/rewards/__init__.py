"""Reward streams: one file per signal."""
