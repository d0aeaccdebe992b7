"""Gymnasium environments that misbehave only where they are watched, which is in another process than the run's."""

from __future__ import annotations

import os
import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from tests.fakes import EchoWorld


class Drawn(gymnasium.Env[Any, Any]):
    """Four steps of a reward of 1, then it ends. What it looks like: its left half red, its right half blue.

    trainer: the process in which it behaves. failing: where it fails elsewhere, "" nowhere; how: raises or hangs.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 60}

    def __init__(
        self, trainer: int = 0, failing: str = "", how: str = "raises", render_mode: str | None = None
    ) -> None:
        self.observation_space = spaces.Box(-1, 1, (2,), np.float32)
        self.action_space = spaces.Discrete(2)
        self.render_mode = render_mode
        self._failing, self._how = failing if os.getpid() != trainer else "", how
        self._step = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._step = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._step += 1
        self._fail_in("step")
        return np.zeros(2, np.float32), 1.0, self._step == 4, False, {}

    def render(self) -> Any:
        self._fail_in("render")
        image = np.zeros((20, 40, 3), np.uint8)
        image[:, :20, 0] = image[:, 20:, 2] = 255
        return image

    def _fail_in(self, place: str) -> None:
        if place == self._failing:
            if self._how == "hangs":
                print("hanging", flush=True)  # in the log of its process
                time.sleep(1000)
            raise ValueError("the wheels came off")


def windowless(trainer: int = 0) -> Drawn:
    """One that cannot be watched: its factory has no render mode."""
    return Drawn(trainer)


class Talking(EchoWorld):
    """Two behaviors, seen as text."""

    def __init__(self) -> None:
        super().__init__(0, 2, 4)

    def step(self, actions: Any) -> Any:
        """Every action is rewarded."""
        self._shown.clear()
        return super().step(actions)

    def render(self) -> str:
        """The number of the step."""
        return f"step {self._step}"
