"""Constants of the action distributions: ML-Agents' own, so that its published settings mean the same here."""

from __future__ import annotations

import math

import numpy as np

from rl_tui.engine.specs import Float32, Int64

EPSILON = 1e-7
LOG_SQRT_TWO_PI = 0.5 * math.log(2 * math.pi)
FORBIDDEN = 1e8  # subtracted from the logit of a choice that the mask forbids
ACTION_LIMIT = 3.0  # continuous samples are clipped to +-3 and divided by 3 on their way to the environment
MIN_LOG_SIGMA, MAX_LOG_SIGMA = -20.0, 2.0  # of a spread that depends on what is seen


def one_hot(chosen: Int64, branches: tuple[int, ...]) -> Float32:
    """f32[N, sum of branches] of i64[N, K]: 1 in the column of each branch's choice."""
    columns = np.zeros((len(chosen), sum(branches)), np.float32)
    starts = np.cumsum([0, *branches[:-1]]) if branches else np.empty(0, np.int64)
    np.put_along_axis(columns, chosen + starts, 1.0, axis=1)
    return columns
