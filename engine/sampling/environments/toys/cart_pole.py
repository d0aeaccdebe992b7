"""CartPole without velocities: one observation does not show which way the pole falls.

Shapes: N copies.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv, VectorObservationWrapper
from gymnasium.wrappers import TransformObservation

from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.sampling.environments.gymnasium_loop import Env, GymnasiumLoop
from rl_tui.engine.sampling.environments.gymnasium_vector import GymnasiumVector
from rl_tui.engine.specs import Float32

CART_POLE = "CartPole-v1"
SEEN = [0, 2]  # position and angle; 1 and 3 are their velocities


def cart_pole_positions(render_mode: str | None = None) -> Env:
    """CartPole-v1 with position and angle only."""
    env: Env = gymnasium.make(CART_POLE, render_mode=render_mode, disable_env_checker=True)
    return TransformObservation(env, lambda state: state[SEEN], _positions(env.observation_space))


class VectorPositions(VectorObservationWrapper[Any, Any, Any]):
    """A vectorized CartPole with position and angle only."""

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        super().__init__(env)
        self.single_observation_space = _positions(env.single_observation_space)
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, env.num_envs)

    def observations(self, observations: Float32) -> Float32:
        """f32[N, 2]."""
        return observations[:, SEEN]


def make_cart_pole_positions(behavior: str, num_copies: int, render_mode: str | None = None) -> Environment:
    """One environment of so many copies, vectorized unless it is a single one or is drawn."""
    if num_copies == 1 or render_mode is not None:
        return GymnasiumLoop(behavior, [cart_pole_positions(render_mode) for _ in range(num_copies)])
    return GymnasiumVector(behavior, VectorPositions(gymnasium.make_vec(CART_POLE, num_copies, "vector_entry_point")))


def _positions(space: spaces.Space[Any]) -> spaces.Box:
    assert isinstance(space, spaces.Box)
    return spaces.Box(space.low[SEEN], space.high[SEEN], dtype=np.float32)
