"""One move between left (-1) and right (+1), as any kind of action.

Shapes: N agents.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import numpy as np

from rl_tui.engine.specs import Actions, ActionSpec, Bool, Float32

ActionKind: TypeAlias = Literal["discrete", "continuous", "hybrid"]
CHOICE_NAMES = ("left", "stay", "right")
NUM_CHOICES = len(CHOICE_NAMES)

ACTION_SPECS: Mapping[ActionKind, ActionSpec] = {
    "discrete": ActionSpec(0, (NUM_CHOICES,)),
    "continuous": ActionSpec(1),
    "hybrid": ActionSpec(1, (NUM_CHOICES,)),
}


def choice_names_of(actions: ActionKind) -> tuple[str, ...]:
    """What the choices mean; empty where there are none."""
    return () if actions == "continuous" else CHOICE_NAMES


def moves(actions: Actions) -> Float32:
    """f32[N] in [-1, 1]: the continuous value, the choice minus one, or the mean of both."""
    kinds = [np.clip(actions.continuous[:, 0], -1.0, 1.0)] if actions.continuous.shape[1] else []
    if actions.discrete.shape[1]:
        kinds.append((actions.discrete[:, 0] - 1).astype(np.float32))
    mean: Float32 = np.mean(kinds, axis=0)
    return mean


def draw_sides(random: np.random.Generator, num_agents: int) -> Float32:
    """f32[N] of -1 and +1."""
    return (random.integers(0, 2, num_agents) * 2 - 1).astype(np.float32)


def mask_away_from(sides: Float32) -> Bool:
    """bool[N, 3]: all but the choice that leads away from the side."""
    mask = np.ones((len(sides), NUM_CHOICES), np.bool_)
    mask[np.arange(len(sides)), np.where(sides > 0, 0, NUM_CHOICES - 1)] = False
    return mask
