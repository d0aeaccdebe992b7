"""Environments that show the parameters of each episode, named by tests as `tests.sampling.parameterized:NAME`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from rl_tui.engine.errors import ConfigError
from rl_tui.engine.sampling.parameters import Parameters
from rl_tui.engine.specs import (
    Actions,
    ActionSpec,
    BehaviorSpec,
    DecisionSteps,
    ObservationSpec,
    Steps,
    TerminalSteps,
)

ABSENT = -1.0


class Shown(gymnasium.Env[np.ndarray, int]):
    """Observes what came in the options of the reset under `size`, and its attributes `gravity` and `count`.

    Every episode has two steps.
    """

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self) -> None:
        self.gravity = 9.81
        self.count = 3
        self.size = ABSENT
        self.options: dict[str, Any] | None = None
        self.num_steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.options = options
        self.size = (options or {}).get("size", ABSENT)
        self.num_steps = 0
        return self._observe(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.num_steps += 1
        return self._observe(), 0.0, self.num_steps >= 2, False, {}

    def _observe(self) -> np.ndarray:
        assert type(self.count) is int
        return np.array([self.size, self.gravity, self.count], np.float32)


class NoOptions(gymnasium.Wrapper[np.ndarray, int, np.ndarray, int]):
    """A wrapper, below which attributes must be found."""


def wrapped() -> gymnasium.Env[np.ndarray, int]:
    return NoOptions(Shown())


class Own:
    """One agent of rl-tui's own protocol, which observes `size`, drawn when its episode begins.

    Episodes have two steps.
    """

    def __init__(self, fails_in: str = "", folder: str = "") -> None:
        self.specs = {"B": BehaviorSpec("B", (ObservationSpec("size", (1,)),), ActionSpec(0, (2,)))}
        self.num_agents = {"B": 1}
        self._parameters = Parameters({})
        self._size = ABSENT
        self._num_steps = 0
        self._fails = bool(fails_in) and not (Path(folder) / fails_in).exists()
        self._folder = Path(folder)
        self._fails_in = fails_in

    def set_parameters(self, parameters: Parameters) -> None:
        if "unknown" in parameters:
            raise ConfigError("environment_parameters.unknown: must be size")
        self._parameters = parameters

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        return {"B": Steps(self._begin())}

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        self._num_steps += 1
        if self._fails and self._num_steps == 2:
            (self._folder / self._fails_in).touch()
            raise RuntimeError("on purpose")
        if self._num_steps < 2:
            return {"B": Steps(self._shown())}
        ended = self._shown()
        terminals = TerminalSteps(ended.agent_ids, ended.observations, ended.rewards, np.zeros(1, np.bool_))
        return {"B": Steps(self._begin(), terminals)}

    def close(self) -> None:
        """Nothing is held."""

    def _begin(self) -> DecisionSteps:
        self._num_steps = 0
        self._size = self._parameters.draw("size", ABSENT)
        return self._shown()

    def _shown(self) -> DecisionSteps:
        return DecisionSteps(np.zeros(1, np.int64), (np.array([[self._size]], np.float32),), np.zeros(1, np.float32))
