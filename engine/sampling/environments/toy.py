"""Small tasks written straight against the Environment protocol: to learn in seconds, and to show how one is written.

Shapes: N agents. Each agent is shown a side, -1 or +1, and should go there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, cast, get_args

import numpy as np

from engine.errors import ConfigError
from engine.sampling.environments.base import Environment
from engine.specs import (
    Actions,
    ActionSpec,
    BehaviorSpec,
    Bool,
    DecisionSteps,
    Float32,
    Int64,
    ObservationSpec,
    Steps,
    TerminalSteps,
)

ActionKind: TypeAlias = Literal["discrete", "continuous", "hybrid"]
NUM_CHOICES = 3  # left, stay, right

_ACTION_SPECS: dict[ActionKind, ActionSpec] = {
    "discrete": ActionSpec(0, (NUM_CHOICES,)),
    "continuous": ActionSpec(1),
    "hybrid": ActionSpec(1, (NUM_CHOICES,)),
}


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


class OneStep:
    """Every step is a whole episode: observation (side), reward side * move, terminated."""

    def __init__(self, behavior: str, num_agents: int, actions: ActionKind = "discrete", masked: bool = False) -> None:
        self._masked = masked and actions != "continuous"
        self.specs: Mapping[str, BehaviorSpec] = {
            behavior: BehaviorSpec(behavior, (ObservationSpec("side", (1,)),), _ACTION_SPECS[actions])
        }
        self.num_agents: Mapping[str, int] = {behavior: num_agents}
        self._behavior = behavior
        self._ids: Int64 = np.arange(num_agents, dtype=np.int64)
        self._random = np.random.default_rng()
        self._sides: Float32 = np.zeros(num_agents, np.float32)

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        """A side for every agent."""
        self._random = np.random.default_rng(seed)
        return {self._behavior: Steps(self._begin())}

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        """Reward every agent's move and show it another side."""
        rewards = (self._sides * moves(actions[self._behavior])).astype(np.float32)
        never = np.zeros(len(self._ids), np.bool_)
        terminals = TerminalSteps(self._ids, (self._sides[:, None],), rewards, never)
        return {self._behavior: Steps(self._begin(), terminals)}

    def close(self) -> None:
        """Nothing is held."""

    def _begin(self) -> DecisionSteps:
        self._sides = draw_sides(self._random, len(self._ids))
        mask = mask_away_from(self._sides) if self._masked else None
        return DecisionSteps(self._ids, (self._sides[:, None],), np.zeros(len(self._ids), np.float32), mask)


class Line:
    """Agents on a line from -1 to 1 that start at 0, see (side) and (position) and move by a quarter at most.

    An end of the line terminates the episode, with reward 1 at the side that was shown and -1 at the other; 20 steps
    truncate it. Every step costs 0.01.
    """

    STEP_SIZE = 0.25
    MAX_EPISODE_STEPS = 20
    STEP_REWARD = -0.01

    def __init__(self, behavior: str, num_agents: int, actions: ActionKind = "discrete", masked: bool = False) -> None:
        self._masked = masked and actions != "continuous"
        observations = (ObservationSpec("side", (1,)), ObservationSpec("position", (1,)))
        self.specs: Mapping[str, BehaviorSpec] = {
            behavior: BehaviorSpec(behavior, observations, _ACTION_SPECS[actions])
        }
        self.num_agents: Mapping[str, int] = {behavior: num_agents}
        self._behavior = behavior
        self._ids: Int64 = np.arange(num_agents, dtype=np.int64)
        self._random = np.random.default_rng()
        self._sides: Float32 = np.zeros(num_agents, np.float32)
        self._positions: Float32 = np.zeros(num_agents, np.float32)
        self._num_steps: Int64 = np.zeros(num_agents, np.int64)

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        """Every agent at 0, with a side of its own."""
        self._random = np.random.default_rng(seed)
        self._begin(np.ones(len(self._ids), np.bool_))
        return {self._behavior: Steps(self._decisions(np.zeros(len(self._ids), np.float32)))}

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        """Move every agent; those that arrive or run out of steps begin anew."""
        self._positions = np.clip(self._positions + self.STEP_SIZE * moves(actions[self._behavior]), -1.0, 1.0)
        self._num_steps += 1
        arrived: Bool = np.abs(self._positions) > 1.0 - 1e-6
        rewards = (np.where(arrived, self._positions * self._sides, 0.0) + self.STEP_REWARD).astype(np.float32)
        ended = arrived | (self._num_steps >= self.MAX_EPISODE_STEPS)
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

    def _decisions(self, rewards: Float32) -> DecisionSteps:
        mask = mask_away_from(self._sides) if self._masked else None
        return DecisionSteps(self._ids, (self._sides[:, None], self._positions[:, None]), rewards, mask)


TASKS: dict[str, type[Line] | type[OneStep]] = {"line": Line, "one-step": OneStep}


class ToyEnvironment:
    """The environments that "toy:NAME" names."""

    @staticmethod
    def make(name: str, behavior: str, num_copies: int, kwargs: Mapping[str, object]) -> list[Environment]:
        """One environment with an agent for each copy. name: "line" or "one-step".

        kwargs: actions ("discrete", "continuous" or "hybrid") and masked. Raises ConfigError for anything else.
        """
        if name not in TASKS:
            raise ConfigError(f"toy:{name}: no such task. Did you mean {' or '.join(f'toy:{task}' for task in TASKS)}?")
        if unknown := set(kwargs) - {"actions", "masked"}:
            raise ConfigError(f"toy:{name}: env_kwargs.{min(unknown)}: unknown key. Known are actions and masked")
        actions, masked = kwargs.get("actions", "discrete"), kwargs.get("masked", False)
        if actions not in get_args(ActionKind) or not isinstance(masked, bool):
            raise ConfigError(f"toy:{name}: env_kwargs: actions is one of {get_args(ActionKind)}, masked true or false")
        return [TASKS[name](behavior, num_copies, cast(ActionKind, actions), masked)]
