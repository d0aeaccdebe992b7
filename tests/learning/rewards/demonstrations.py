"""Demonstrations in memory, as a file of them would be read."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from rl_tui.engine.learning.acting.distributions import ACTION_LIMIT
from rl_tui.engine.learning.transitions import Transitions
from rl_tui.engine.specs import Int64, Trajectories


class Shown:
    """The steps of a block, as the environment got them. Implements Demonstrations."""

    def __init__(self, block: Trajectories, is_squashed: bool = False) -> None:
        steps, ends = Transitions.of(block), np.cumsum(block.lengths)
        if not is_squashed:
            bounded = steps.continuous_actions.clip(-ACTION_LIMIT, ACTION_LIMIT) / np.float32(ACTION_LIMIT)
            steps = replace(steps, continuous_actions=bounded)
        self.steps = steps
        self.episodes: Int64 = np.stack([ends - block.lengths, ends], 1)
        self.drawn: list[Int64] = []

    @property
    def num_steps(self) -> int:
        """How many there are."""
        return self.steps.num_rows

    def transitions(self, rows: Int64) -> Transitions:
        """The steps in these rows."""
        self.drawn.append(rows)
        found = {field.name: getattr(self.steps, field.name) for field in fields(self.steps)}
        for name, column in found.items():
            found[name] = (
                tuple(part[rows] for part in column)
                if isinstance(column, tuple)
                else (None if column is None else column[rows])
            )
        return Transitions(**found)
