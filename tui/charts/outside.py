"""What is outside the y axis of a figure.  Shapes: D columns."""

from __future__ import annotations

import math
from typing import NamedTuple

from rl_tui.tui.charts.arrays import Bools, Floats, np
from rl_tui.tui.charts.figure import Sampled, Samples
from rl_tui.tui.charts.scale import Scale


class Outside(NamedTuple):
    """What is not in the range of its axis. above, below: shares of what is drawn; lowest, highest: how far it goes."""

    above: float
    below: float
    lowest: float
    highest: float


def edges(low: Floats, high: Floats, scale: Scale) -> tuple[Bools, Bools]:
    """(bool[D]: whether it goes beyond the top, bool[D]: beyond the bottom). low, high: f64[D], NaN for nothing."""
    return high > scale.top * (1 + math.copysign(1e-9, scale.top)), low < scale.bottom * (
        1 - math.copysign(1e-9, scale.bottom)
    )


def outside(samples: Samples) -> Outside | None:
    """Of all curves together; None where everything is visible."""
    drawn = above = below = 0
    lowest, highest = math.inf, -math.inf
    for each in samples.curves:
        scale = samples.scales.get(each.curve.metric)
        if scale is None:
            continue
        low, high = ends(each)
        over, under = edges(low, high, scale)
        drawn, above, below = drawn + int(np.isfinite(low).sum()), above + int(over.sum()), below + int(under.sum())
        highest = max([highest, *high[over].tolist()])
        lowest = min([lowest, *low[under].tolist()])
    return Outside(above / drawn, below / drawn, lowest, highest) if above or below else None


def ends(sampled: Sampled) -> tuple[Floats, Floats]:
    """(f64[D], f64[D]): from where to where each column is drawn."""
    if sampled.line is None:
        return sampled.spread.low, sampled.spread.high
    if sampled.has_spread:
        return np.fmin(sampled.line, sampled.spread.low), np.fmax(sampled.line, sampled.spread.high)
    return sampled.line, sampled.line
