"""Ticks of the value axis: round values, as many rows between each two of them, and one above all curves."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rl_tui.tui.charts.arrays import np
from rl_tui.tui.charts.curve import Range
from rl_tui.tui.charts.raster import dot_rows
from rl_tui.tui.charts.x_axis import step_label
from rl_tui.tui.drawing.text import number, round_count

LABEL_WIDTH = 6
STEPS = ((1.0, 1.0), (2.0, 1.0), (5.0, 1.0), (2.5, 0.85), (4.0, 0.75), (3.0, 0.75))  # and how much each is liked
UNREADABLE = 0.1  # as much is a step liked whose labels are too long or the same
FEW = 0.7  # one that leaves few ticks
ON_TICK = 1.25  # and one with a tick at the highest value, which often is the highest possible return
BELOW, ABOVE = 0.5, 0.25  # of a step, by which values may go beyond the outermost ticks


class Rows(NamedTuple):
    """Rows of cells that a chart has for its curves, and rows of dots in each."""

    num: int
    dots: int


class Ticks(NamedTuple):
    """bottom, top: ends of the axis; values: of the ticks, from below."""

    bottom: float
    top: float
    values: tuple[float, ...]


def even_ticks(low: float, high: float, rows: Rows, *, is_power: bool = False) -> Ticks | None:
    """The axis around the values whose ticks stand equally far from each other; None where it has no room.

    A curve goes at most a little beyond the outermost ticks, so that its top has a number. Of all such axes it is the
    one that leaves the curve most of the rows. is_power: the values are exponents, and ticks stand at whole ones.
    """
    best: tuple[float, int, int, int] | None = None
    best_rate = math.inf
    for step, liked in _steps(high - low, rows.num, is_power=is_power):
        first, last = math.ceil(low / step - BELOW), math.ceil(high / step - ABOVE)
        spaces = max(1, last - first)
        apart, below = _placed(first - low / step, high / step - (first + spaces), spaces, rows.num)
        if not apart:
            continue
        labels = [] if is_power else _labels([index * step for index in range(first, last + 1)], step)
        found = liked * (1 if are_readable(labels) else UNREADABLE) * (1 if spaces >= _enough_spaces(rows.num) else FEW)
        found *= ON_TICK if abs(high / step - round(high / step)) < 1e-6 else 1
        rate = step / apart / found
        if rate < best_rate * (1 - 1e-9):
            best, best_rate = (step, first, apart, below), rate
    if best is None:
        return None
    step, first, apart, below = best
    unit = step / apart / rows.dots  # of a row of dots
    bottom = first * step - (below * rows.dots + (rows.dots - 1) // 2) * unit  # ticks in the middle of their rows
    lowest = first - below // apart
    num_ticks = (rows.num - 1 - below % apart) // apart + 1
    values = tuple((lowest + index) * step for index in range(num_ticks))
    return Ticks(bottom, bottom + (rows.num * rows.dots - 1) * unit, values)


def _placed(below: float, above: float, spaces: int, num_rows: int) -> tuple[int, int]:
    """(rows from tick to tick, rows below the first), as many as there is room for; (0, 0) where there is none.

    below, above: how many steps the values go beyond the first and the last of the ticks.
    """
    for apart in range((num_rows - 1) // spaces, _least_apart(num_rows) - 1, -1):
        beneath, over = (math.ceil(max(0.0, beyond) * apart - 0.01) for beyond in (below, above))
        if spaces * apart + beneath + over < num_rows:
            return apart, beneath
    return 0, 0


def _steps(span: float, num_rows: int, *, is_power: bool) -> Iterator[tuple[float, float]]:
    """Every step between ticks that may fit, and how much it is liked."""
    if is_power:
        yield from ((float(step), 1.0) for step in (1, 2, 3, 5, 10, 20, 50, 100, 200, 300))
        return
    lowest = max(-300, math.floor(math.log10(span / num_rows)))
    for power in range(lowest, min(300, math.ceil(math.log10(span)) + 1)):
        for factor, liked in STEPS:
            yield factor * 10.0**power, liked


def _least_apart(num_rows: int) -> int:
    """Rows from one label to the next."""
    return 1 if num_rows < 5 else 2 if num_rows < 16 else 3 if num_rows < 32 else 4


def _enough_spaces(num_rows: int) -> int:
    """Spaces between ticks that a chart of that height is read by."""
    return 1 if num_rows < 5 else 2 if num_rows < 16 else 3


def tick_labels(values: Sequence[float], step: float) -> list[str]:
    """A label for each tick, in one form for all of them; "" for one that would be the same as another."""
    labels = _labels(values, step)
    return [label if label not in labels[:at] else "" for at, label in enumerate(labels)]


def are_readable(labels: Sequence[str]) -> bool:
    """Whether they have room and differ."""
    return len(set(labels)) == len(labels) and all(len(label) <= LABEL_WIDTH for label in labels)


def _labels(values: Sequence[float], step: float) -> list[str]:
    """With the decimals that the step needs; from 10,000 on with a unit, and as powers where zeros would fill them."""
    largest = max((abs(value) for value in values), default=0.0)
    if largest >= 10_000:
        counts = ["0" if abs(value) < step / 1000 else step_label(value, step) for value in values]
        if are_readable(counts):
            return counts
    decimals = next((at for at in range(5) if abs(step * 10**at - round(step * 10**at)) < 1e-6 * 10**at * step), 5)
    plain = ["0" if abs(value) < step / 1000 else f"{value:.{decimals}f}" for value in values]
    if decimals <= 4 and are_readable(plain):
        return plain
    if largest >= 10_000:
        return [round_count(value) for value in values]
    for digits in range(3):
        powers = ["0" if abs(value) < step / 1000 else _power(value, digits) for value in values]
        if all(abs(float(text) - value) < step / 100 for text, value in zip(powers, values, strict=True)):
            return powers
    return [number(value) for value in values]


def _power(value: float, digits: int) -> str:
    mantissa, _, exponent = f"{value:.{digits}e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def are_even(places: Sequence[float], y_range: Range, rows: Rows) -> bool:
    """Whether values at these places stand in rows at equal distances, of at least two."""
    dots = dot_rows(np.array(places), y_range, rows.num * rows.dots)
    apart = np.diff(dots.astype(np.int64) // rows.dots)
    return bool((apart == apart[0]).all() and abs(int(apart[0])) > 1)
