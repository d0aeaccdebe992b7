"""An environment whose returns are its lesson, named by tests as `tests.running.lessons.worlds:Graded`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rl_tui.engine.sampling.parameters import Parameters
from rl_tui.engine.specs import (
    Actions,
    ActionSpec,
    BehaviorSpec,
    DecisionSteps,
    ObservationSpec,
    Statistic,
    Steps,
    TerminalSteps,
)


class Graded:
    """One agent. Every step is rewarded with the parameter `grade`, drawn when its episode begins, and observes it.

    It is reported as the statistic World/Grade, too.
    """

    def __init__(self, length: int = 4, behavior: str = "Walker") -> None:
        """length: of an episode, in steps; 0: it never ends."""
        self.specs = {behavior: BehaviorSpec(behavior, (ObservationSpec("grade", (1,)),), ActionSpec(0, (2,)))}
        self.num_agents = {behavior: 1}
        self._behavior, self._length = behavior, length
        self._parameters = Parameters({})
        self._grade, self._num_steps = 0.0, 0

    def set_parameters(self, parameters: Parameters) -> None:
        self._parameters = parameters

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        return {self._behavior: Steps(self._begin())}

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        self._num_steps += 1
        shown = self._shown(self._grade)
        if self._num_steps != self._length:
            return {self._behavior: Steps(shown, statistics=self._statistics())}
        terminals = TerminalSteps(shown.agent_ids, shown.observations, shown.rewards, np.zeros(1, np.bool_))
        return {self._behavior: Steps(self._begin(), terminals, statistics=self._statistics())}

    def _statistics(self) -> tuple[Statistic, ...]:
        return (Statistic("World/Grade", self._grade, "last"),)

    def close(self) -> None:
        """Nothing is held."""

    def _begin(self) -> DecisionSteps:
        self._grade, self._num_steps = self._parameters.draw("grade"), 0
        return self._shown(0.0)

    def _shown(self, reward: float) -> DecisionSteps:
        seen = np.array([[self._grade]], np.float32)
        return DecisionSteps(np.zeros(1, np.int64), (seen,), np.array([reward], np.float32))
