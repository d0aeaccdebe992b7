"""Images that cost nothing to make, to measure the speed of everything else."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rl_tui.engine.sampling.environments.rendering import enlarged

NUM_FRAMES, NUM_CHOICES, EPISODE_STEPS = 64, 4, 1000


class Frames(gymnasium.Env[NDArray[np.uint8], np.int64]):
    """Shows the same 64 images u8[size, size, 3] of noise in turn, for 1000 steps per episode; reward 1 for the choice
    that equals the image's number modulo 4.

    It is Gymnasium's, so that other programs can be measured on it.
    """

    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, size: int = 84, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.observation_space = spaces.Box(0, 255, (size, size, 3), np.uint8)
        self.action_space = spaces.Discrete(NUM_CHOICES)
        self._frames = np.random.default_rng(0).integers(0, 256, (NUM_FRAMES, size, size, 3), np.uint8)
        self._first = 0
        self._step = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Start with a random image."""
        super().reset(seed=seed)
        self._first = int(self.np_random.integers(NUM_FRAMES))
        self._step = 0
        return self._frames[self._first].copy(), {}

    def step(self, action: np.int64) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        """Show the next image."""
        reward = float(action == self._number % NUM_CHOICES)
        self._step += 1
        return self._frames[self._number].copy(), reward, self._step == EPISODE_STEPS, False, {}

    def render(self) -> NDArray[np.uint8]:
        """The image that is shown."""
        return enlarged(self._frames[self._number])

    @property
    def _number(self) -> int:
        return (self._first + self._step) % NUM_FRAMES
