"""What the choices of a Gymnasium environment mean, where that is known: Gymnasium itself has numbers alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium

from rl_tui.engine.specs import ActionSpec

BY_ID: Mapping[str, tuple[str, ...]] = {  # without its version
    "Acrobot": ("torque -1", "no torque", "torque +1"),
    "Blackjack": ("stick", "hit"),
    "CartPole": ("push left", "push right"),
    "CliffWalking": ("up", "right", "down", "left"),
    "CliffWalkingSlippery": ("up", "right", "down", "left"),
    "FrozenLake": ("left", "down", "right", "up"),
    "FrozenLake8x8": ("left", "down", "right", "up"),
    "LunarLander": ("nothing", "left engine", "main engine", "right engine"),
    "MountainCar": ("push left", "no push", "push right"),
    "Taxi": ("south", "north", "east", "west", "pick up", "drop off"),
}
MEANINGS = "get_action_meanings"  # of Atari's environments, and of others that follow them


def choice_names(environment: gymnasium.Env[Any, Any], actions: ActionSpec) -> tuple[str, ...]:
    """A name for each choice of its only branch: what the environment says, or else what is known of its id.

    Empty where there is neither, or where their number is another.
    """
    if len(actions.branches) != 1 or actions.continuous:
        return ()
    names = _said_by(environment) or BY_ID.get(environment.spec.name if environment.spec is not None else "", ())
    return tuple(names) if len(names) == actions.branches[0] else ()


def _said_by(environment: gymnasium.Env[Any, Any]) -> Sequence[str]:
    meanings = getattr(environment.unwrapped, MEANINGS, None)
    said = meanings() if callable(meanings) else None
    if not isinstance(said, Sequence) or not all(isinstance(name, str) for name in said):
        return ()
    return [name.lower() for name in said]
