"""Round ranges and ticks, so that a growing curve moves the axes rarely."""

from __future__ import annotations

import math

from rl_tui.tui.charts.curve import Range
from rl_tui.tui.charts.reducing import LARGEST


def nice_step(span: float, num_steps: int) -> float:
    """The smallest of 1, 2, 5 times a power of ten that covers `span` in at most `num_steps` steps."""
    rough = span / max(num_steps, 1)
    if not (rough > 0 and math.isfinite(rough)):
        return 1.0
    power = 10.0 ** max(math.floor(math.log10(rough)), -300)
    return next((power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9)), power * 10)


def widened(low: float, high: float) -> Range:
    """The range, or where it is a single value one around it; no end is farther than a float can compare."""
    low, high = (min(LARGEST, max(-LARGEST, value)) for value in (low, high))
    if high - low > 1e-9 * max(abs(low), abs(high)):
        return low, high
    margin = abs(high) * 0.1 or 1.0
    return low - margin, high + margin


def value_range(low: float, high: float) -> Range:
    """(bottom, top) of the value axis: round numbers close around [low, high]; bottom < top also for a constant."""
    low, high = widened(low, high)
    grain = nice_step(high - low, 12)
    bottom, top = math.floor(low / grain + 1e-9) * grain, math.ceil(high / grain - 1e-9) * grain
    return bottom, max(top, bottom + grain)


def grown(start: float, last: float, grain: float) -> float:
    """The end of an axis that reaches `last` in whole grains, at least one."""
    return start + max(1, math.ceil((last - start) / grain - 1e-9)) * grain


def step_range(first: float, last: float) -> Range:
    """(start, end) of the step axis: from 0 unless the run was resumed late; the end grows by a tenth at a time."""
    start = 0.0 if first < last / 2 else first
    return start, grown(start, last, nice_step(max(last - start, 10.0), 10))


def ticks(start: float, end: float, num_ticks: int) -> list[float]:
    """Round values within [start, end], at most about `num_ticks`."""
    step = nice_step(end - start, num_ticks)
    first = math.ceil(start / step - 1e-9)
    last = math.floor(end / step + 1e-9)
    return [index * step for index in range(first, last + 1)]
