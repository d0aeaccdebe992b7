"""Watching a policy play while it trains."""
