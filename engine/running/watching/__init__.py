"""A policy at play, to be looked at while it trains."""
