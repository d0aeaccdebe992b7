"""A walk along a line.  Shapes: N agents."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.sampling.environments.toys.moves import (
    ACTION_SPECS,
    ActionKind,
    choice_names_of,
    draw_sides,
    mask_away_from,
    moves,
)
from rl_tui.engine.sampling.parameters import Parameters
from rl_tui.engine.specs import (
    Actions,
    BehaviorSpec,
    Bool,
    DecisionSteps,
    Float32,
    Int64,
    ObservationSpec,
    Steps,
    TerminalSteps,
)


class Line:
    """Agents on a line from -1 to 1 that start at 0, observe a side and their position, and move by a step at most.

    The environment parameter `length`, from 1, is how many steps lead to an end: 4 without it. An end terminates the
    episode, with reward 1 on the side that is shown and -1 on the other; after 12 steps more than twice the length it
    is truncated. Every step costs 0.01.
    """

    LENGTH = 4.0
    SPARE_STEPS = 12
    STEP_REWARD = -0.01

    def __init__(self, behavior: str, num_agents: int, actions: ActionKind = "discrete", masked: bool = False) -> None:
        self._masked = masked and actions != "continuous"
        observations = (ObservationSpec("side", (1,)), ObservationSpec("position", (1,)))
        spec = BehaviorSpec(behavior, observations, ACTION_SPECS[actions], choice_names=choice_names_of(actions))
        self.specs: Mapping[str, BehaviorSpec] = {behavior: spec}
        self.num_agents: Mapping[str, int] = {behavior: num_agents}
        self._behavior = behavior
        self._ids: Int64 = np.arange(num_agents, dtype=np.int64)
        self._random = np.random.default_rng()
        self._sides: Float32 = np.zeros(num_agents, np.float32)
        self._positions: Float32 = np.zeros(num_agents, np.float32)
        self._num_steps: Int64 = np.zeros(num_agents, np.int64)
        self._lengths = np.full(num_agents, self.LENGTH, np.float32)
        self._parameters: list[Parameters] = []  # by agent

    def set_parameters(self, parameters: Parameters) -> None:
        """Each agent draws its length when its episode begins. Raises ConfigError for other parameters."""
        for name in parameters:
            if name != "length":
                raise ConfigError(f"environment_parameters.{name}: must be length, the only parameter of toy:line")
        self._parameters = [parameters.of_copy(index) for index in range(len(self._ids))]

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        """Put every agent at 0, with a side of its own."""
        self._random = np.random.default_rng(seed)
        self._begin(np.ones(len(self._ids), np.bool_))
        return {self._behavior: Steps(self._decisions(np.zeros(len(self._ids), np.float32)))}

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        """Move every agent; those that arrive or run out of steps start a new episode."""
        self._positions = np.clip(self._positions + moves(actions[self._behavior]) / self._lengths, -1.0, 1.0)
        self._num_steps += 1
        arrived: Bool = np.abs(self._positions) > 1.0 - 1e-6
        rewards = (np.where(arrived, self._positions * self._sides, 0.0) + self.STEP_REWARD).astype(np.float32)
        ended = arrived | (self._num_steps >= 2 * self._lengths + self.SPARE_STEPS)
        if not ended.any():
            return {self._behavior: Steps(self._decisions(rewards))}
        final = self._sides[ended, None], self._positions[ended, None]
        terminals = TerminalSteps(self._ids[ended], final, rewards[ended], ~arrived[ended])
        self._begin(ended)
        return {self._behavior: Steps(self._decisions(np.where(ended, np.float32(0), rewards)), terminals)}

    def close(self) -> None:
        """Nothing is held."""

    def _begin(self, agents: Bool) -> None:
        self._sides = np.where(agents, draw_sides(self._random, len(self._ids)), self._sides)
        self._positions = np.where(agents, np.float32(0), self._positions)
        self._num_steps[agents] = 0
        for index in np.flatnonzero(agents).tolist() if self._parameters else ():
            self._lengths[index] = max(1.0, self._parameters[index].draw("length", self.LENGTH))

    def _decisions(self, rewards: Float32) -> DecisionSteps:
        mask = mask_away_from(self._sides) if self._masked else None
        return DecisionSteps(self._ids, (self._sides[:, None], self._positions[:, None]), rewards, mask)
