"""Players of a pong that do not learn, as functions of what they observe.  Shapes: N paddles."""

from __future__ import annotations

import numpy as np

from rl_tui.engine.sampling.environments.toys.pong_court import PADDLE_SPEED
from rl_tui.engine.sampling.environments.toys.pong_views import BALL_X, BALL_Y, OWN_Y, VELOCITY_X
from rl_tui.engine.specs import Float32, Int64

STAY, UP, DOWN = range(3)
CHOICE_NAMES = ("stay", "up", "down")
MOVES = np.array([0, 1, -1], np.float32)  # of each choice


def tracking(seen: Float32) -> Int64:
    """Choices i64[N] of paddles that follow the ball, given their vectors f32[N, D].

    A paddle moves towards the height of a ball that comes, and to the middle while it flies away. It does not see where
    the ball is going, and is slower than one that is fast and steep.
    """
    comes = (seen[:, VELOCITY_X] < 0) & (seen[:, BALL_X] > -1.0)
    gaps = np.where(comes, seen[:, BALL_Y], 0.0) - seen[:, OWN_Y]
    near = np.abs(gaps) <= PADDLE_SPEED / 2  # closer than any move could bring it
    choices: Int64 = np.where(near, STAY, np.where(gaps > 0, UP, DOWN))
    return choices
