"""A curve in one line of text."""

from __future__ import annotations

import math

from rl_tui.tui.charts.arrays import Floats, np
from rl_tui.tui.charts.reducing import LARGEST

CELL_SECONDS = (1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0)
ROUND = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)  # steps of a cell, times a power of ten


def sparkline(values: Floats, width: int, levels: str, limits: tuple[float, float] | None = None) -> str:
    """Exactly `width` characters, one for each of the newest values, the newest at the right; blank where not finite.

    limits: what the lowest and the highest level stand for; None takes those of the values.
    """
    newest = values[max(0, len(values) - width) :].tolist()  # few numbers: numpy would take twice as long
    heights = [min(max(value, -LARGEST), LARGEST) for value in newest if math.isfinite(value)]
    if width < 1 or not heights:
        return " " * max(width, 0)
    low, high = limits or (min(heights), max(heights))
    top, is_level = len(levels) - 1, high - low <= 1e-12 * max(abs(low), abs(high))  # but for the last digits

    def sign(value: float) -> str:
        if not math.isfinite(value):
            return " "
        return levels[top // 2 if is_level else round((min(max(value, low), high) - low) / (high - low) * top)]

    return "".join(sign(value) for value in newest).rjust(width)


def by_time(times: Floats, values: Floats, num_cells: int, seconds: float) -> Floats:
    """f64[num_cells]: the mean value in each span of time, the newest last, together at least `seconds` long.

    While the curve is younger than that, a cell stands for fewer seconds, so that half of the cells have a value soon.
    What a cell holds: see `_in_cells`.
    """
    if len(times) == 0 or num_cells < 1:
        return np.full(max(num_cells, 0), np.nan)
    return _in_cells(times, values, num_cells, _cell_seconds(min(seconds, times[-1] - times[0]) / num_cells))


def by_steps(steps: Floats, values: Floats, num_cells: int) -> Floats:
    """f64[num_cells]: the mean value in each span of steps, the newest last, together all of the curve.

    A span is a round number of steps, so that up to a quarter of the cells may be empty. What a cell holds: see
    `_in_cells`.
    """
    if len(steps) == 0 or num_cells < 1:
        return np.full(max(num_cells, 0), np.nan)
    return _in_cells(steps, values, num_cells, _cell_steps((steps[-1] - steps[0]) / max(1, num_cells - 1)))


def _in_cells(xs: Floats, values: Floats, num_cells: int, length: float) -> Floats:
    """f64[num_cells]: means of cells of that length. xs: f64[N] not decreasing, N > 0.

    Cells begin at whole multiples of their length: only the newest one changes until the next begins. One without a
    value repeats the one before; NaN before the first value, and where there are values but none is finite.
    """
    cells = np.full(num_cells, np.nan)
    end = float(xs[-1])
    first = int(np.searchsorted(xs, (end // length - num_cells + 1) * length))
    at = np.floor(xs[first:] / length).astype(np.int64) - int(end // length) + num_cells - 1
    at, values = np.maximum(at, 0), values[first:]  # rounding may put a point on a border into the cell before
    has_value = np.bincount(at, minlength=num_cells) > 0
    finite = np.isfinite(values)
    number = np.bincount(at[finite], minlength=num_cells)
    shares = np.clip(values[finite], -LARGEST, LARGEST) / number[at[finite]]  # divided first: their sum may overflow
    total = np.bincount(at[finite], shares, num_cells)
    cells[number > 0] = total[number > 0]
    return cells[np.maximum.accumulate(np.where(has_value, np.arange(num_cells), 0))]


def _cell_seconds(at_least: float) -> float:
    return next((seconds for seconds in CELL_SECONDS if seconds >= at_least), at_least)


def _cell_steps(at_least: float) -> float:
    """The next round number: while a run grows, the cells' borders seldom move."""
    if at_least <= 1:
        return 1.0
    power = 10.0 ** math.floor(math.log10(at_least))
    return next((share * power for share in ROUND if share * power >= at_least), at_least)
