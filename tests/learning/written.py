"""Policies that are written down, not learned."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rl_tui.engine.specs import Actions, Choice, DecisionSteps, Float32, State, Weights


class Written:
    """Acts by a function. asked: on how many rows so far."""

    version, memory_size = 0, 0

    def __init__(self, choose: Callable[[DecisionSteps], Actions]):
        self._choose = choose
        self.asked = 0

    def act(self, decisions: DecisionSteps, memories: Float32 | None = None) -> Choice:
        """See Policy."""
        self.asked += len(decisions.agent_ids)
        actions = self._choose(decisions)
        columns = actions.continuous.shape[1] + actions.discrete.shape[1]
        return Choice(actions, 3 * actions.continuous, np.zeros((len(actions.discrete), columns), np.float32), None)

    def load(self, weights: Weights) -> None:
        """It has none."""

    def state(self) -> State:
        """It draws nothing."""
        return State()

    def load_state(self, state: State) -> None:
        """It draws nothing."""
