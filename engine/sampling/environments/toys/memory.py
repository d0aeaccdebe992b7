"""A task that one observation is not enough for.  Shapes: N agents."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rl_tui.engine.sampling.environments.toys.moves import (
    ACTION_SPECS,
    ActionKind,
    choice_names_of,
    draw_sides,
    moves,
)
from rl_tui.engine.specs import (
    Actions,
    BehaviorSpec,
    DecisionSteps,
    Float32,
    Int64,
    ObservationSpec,
    Steps,
    TerminalSteps,
)


class Memory:
    """The side is shown when an episode begins, and `delay` steps later the move is rewarded: side * move.

    Observed are the side, 0 after the first step, and whether the move counts this time. Without memory the best
    return is 0.
    """

    def __init__(self, behavior: str, num_agents: int, actions: ActionKind = "discrete", delay: int = 4) -> None:
        observations = (ObservationSpec("side", (1,)), ObservationSpec("counts", (1,)))
        spec = BehaviorSpec(behavior, observations, ACTION_SPECS[actions], choice_names=choice_names_of(actions))
        self.specs: Mapping[str, BehaviorSpec] = {behavior: spec}
        self.num_agents: Mapping[str, int] = {behavior: num_agents}
        self._behavior = behavior
        self._delay = delay
        self._ids: Int64 = np.arange(num_agents, dtype=np.int64)
        self._random = np.random.default_rng()
        self._sides: Float32 = np.zeros(num_agents, np.float32)
        self._num_steps = 0

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        """Draw a side for every agent."""
        self._random = np.random.default_rng(seed)
        return {self._behavior: Steps(self._begin())}

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        """Reward the last move of the episode, and no other."""
        self._num_steps += 1
        if self._num_steps <= self._delay:
            return {self._behavior: Steps(self._decisions(np.zeros(len(self._ids), np.float32)))}
        rewards = (self._sides * moves(actions[self._behavior])).astype(np.float32)
        final = self._decisions(rewards).observations
        terminals = TerminalSteps(self._ids, final, rewards, np.zeros(len(self._ids), np.bool_))
        return {self._behavior: Steps(self._begin(), terminals)}

    def close(self) -> None:
        """Nothing is held."""

    def _begin(self) -> DecisionSteps:
        self._sides = draw_sides(self._random, len(self._ids))
        self._num_steps = 0
        return self._decisions(np.zeros(len(self._ids), np.float32))

    def _decisions(self, rewards: Float32) -> DecisionSteps:
        seen = self._sides if self._num_steps == 0 else np.zeros_like(self._sides)
        counts = np.full((len(self._ids), 1), self._num_steps == self._delay, np.float32)
        return DecisionSteps(self._ids, (seen[:, None], counts), rewards)
