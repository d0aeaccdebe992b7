"""The copies of an environment that a user's factory has made."""

from __future__ import annotations

from typing import Any

from rl_tui.engine.errors import ConfigError


def has_member(found: object, name: str) -> bool:
    """Whether it has that attribute; a property is not evaluated, since that may begin an episode."""
    return hasattr(type(found), name) or hasattr(found, name)


def require_different(env: str, copies: list[Any]) -> None:  # Any: what a user's function returns
    """No environment is there twice: each copy would reset the other. env: for messages. Raises ConfigError."""
    first, number = copies[0], len(copies)
    if hasattr(first, "step") and len({id(getattr(copy, "unwrapped", copy)) for copy in copies}) < number:
        text = f"must return a new environment at each of {number} calls, got the same {type(first).__name__} again"
        raise ConfigError(f"{env}: {text}")
