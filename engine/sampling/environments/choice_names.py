"""What the choices of an environment mean, where that is known: Gymnasium and PettingZoo have numbers alone."""

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
CARDS = ("call", "raise", "fold", "check")
MOVES = ("stay", "left", "right", "down", "up")
OF_PETTINGZOO: Mapping[str, tuple[str, ...]] = {  # by the name in its metadata, without its version
    "leduc_holdem": CARDS,
    "rps": ("rock", "paper", "scissors"),
    "simple_adversary": MOVES,
    "simple_push": MOVES,
    "simple_spread": MOVES,
    "simple_tag": MOVES,
    "texas_holdem": CARDS,
    "texas_holdem_no_limit": ("fold", "check or call", "raise by half the pot", "raise by the pot", "all in"),
}
MEANINGS = "get_action_meanings"  # of Atari's environments, and of others that follow them


def choice_names(environment: gymnasium.Env[Any, Any], actions: ActionSpec) -> tuple[str, ...]:
    """A name for each choice of its only branch: what the environment says, or else what is known of its id.

    Empty where there is neither, or where their number is another.
    """
    names = _said_by(environment) or BY_ID.get(environment.spec.name if environment.spec is not None else "", ())
    return _if_fitting(names, actions)


def choice_names_of_pettingzoo(name: object, actions: ActionSpec) -> tuple[str, ...]:
    """The same for one of PettingZoo. name: in its metadata, like "rps_v2"."""
    return _if_fitting(OF_PETTINGZOO.get(str(name).rpartition("_v")[0], ()), actions)


def _if_fitting(names: Sequence[str], actions: ActionSpec) -> tuple[str, ...]:
    is_single = len(actions.branches) == 1 and not actions.continuous
    return tuple(names) if is_single and len(names) == actions.branches[0] else ()


def _said_by(environment: gymnasium.Env[Any, Any]) -> Sequence[str]:
    meanings = getattr(environment.unwrapped, MEANINGS, None)
    said = meanings() if callable(meanings) else None
    if not isinstance(said, Sequence) or not all(isinstance(name, str) for name in said):
        return ()
    return [name.lower() for name in said]
