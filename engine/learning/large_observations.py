"""Which observation may be why a loss is not finite."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rl_tui.engine.specs import Observation, ObservationSpec

LARGE = 1e6  # far more than a network learns from unless it is normalized; squares overflow beyond 1e19


def largest_observation(specs: Sequence[ObservationSpec], columns: Sequence[Observation]) -> str:
    """ "; observation 'joints' reaches 1e+19" of the largest one beyond LARGE, "" where there is none.

    columns: [N, ...] of each observation.
    """
    reached = [(float(np.abs(column).max(initial=0)), spec.name) for spec, column in zip(specs, columns, strict=True)]
    size, name = max(reached)
    return f"; observation {name!r} reaches {size:.3g}" if size > LARGE else ""
