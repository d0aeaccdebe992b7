"""Constants of the action distributions: ML-Agents' own, so that its published settings mean the same here."""

from __future__ import annotations

import math

EPSILON = 1e-7
LOG_SQRT_TWO_PI = 0.5 * math.log(2 * math.pi)
FORBIDDEN = 1e8  # subtracted from the logit of a choice that the mask forbids
ACTION_LIMIT = 3.0  # continuous samples are clipped to +-3 and divided by 3 on their way to the environment
MIN_LOG_SIGMA, MAX_LOG_SIGMA = -20.0, 2.0  # of a spread that depends on what is seen
