"""The value axis: linear, logarithmic, or on both sides of zero logarithmic (symlog)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from rl_tui.tui.charts.arrays import Floats, np
from rl_tui.tui.charts.axes import ticks, value_range, widened
from rl_tui.tui.charts.curve import Range
from rl_tui.tui.charts.reducing import LARGEST
from rl_tui.tui.charts.x_axis import Tick
from rl_tui.tui.charts.y_range import AUTOMATIC, YRange
from rl_tui.tui.charts.y_ticks import Rows, are_even, even_ticks, tick_labels
from rl_tui.tui.drawing.text import number, round_count

Kind: TypeAlias = Literal["linear", "log", "symlog"]
EVEN_DECADES = 1.5  # from which a logarithmic axis begins and ends with powers of ten
SYMLOG_DECADES = 3  # below the largest value; what is smaller still lies on the linear part


@dataclass(frozen=True, slots=True)
class Scale:
    """Where values lie. bottom < top; linear: symlog's size of value up to which it is nearly linear.

    values: of its ticks, where they were chosen for the rows of a chart.
    """

    kind: Kind
    bottom: float
    top: float
    linear: float = 1.0
    values: tuple[float, ...] = ()

    def places(self, values: Floats) -> Floats:
        """f64 of the same shape: places in the unit of `y_range`; NaN for NaN."""
        match self.kind:
            case "linear":
                return values
            case "log":
                return np.log10(np.maximum(values, self.bottom))
            case "symlog":
                sizes = np.minimum(
                    np.abs(values), LARGEST * self.linear
                )  # what is clipped may be as large as a float can
                return np.sign(values) * np.log10(1 + sizes / self.linear)

    @property
    def y_range(self) -> Range:
        """Places of bottom and top."""
        bottom, top = self.places(np.array([self.bottom, self.top])).tolist()
        return bottom, top

    @property
    def ends(self) -> Range:
        """What to call bottom and top: the outermost ticks that were chosen, else themselves."""
        return (self.values[0], self.values[-1]) if self.values else (self.bottom, self.top)

    def ticks(self, num_ticks: int) -> list[Tick]:
        """Those chosen for the chart, else round values from bottom to top: about `num_ticks` at most, two at least if
        linear. No label is there twice."""
        values = self.values or self._values(num_ticks)
        return [Tick(value, label) for value, label in zip(values, self._labels(values), strict=True) if label]

    def evenly(self, rows: Rows) -> Scale:
        """With the most ticks between its ends that stand in these rows at equal distances, if there are any."""
        for num_ticks in range(max(2, rows.num // 3), 1, -1):
            values = self._values(num_ticks)
            if len(values) > 1 and are_even(self.places(np.array(values)).tolist(), self.y_range, rows):
                return replace(self, values=tuple(values))
        return self

    def _labels(self, values: Sequence[float]) -> list[str]:
        """ "" for one that would be the same as another."""
        if self.kind != "linear":
            return [_power_label(value) for value in values]
        return tick_labels(values, values[1] - values[0] if len(values) > 1 else self.top - self.bottom)

    def _values(self, num_ticks: int) -> list[float]:
        if self.kind == "linear" or (self.kind == "log" and self.top < 3 * self.bottom):
            tried = [ticks(self.bottom, self.top, most) for most in (num_ticks, 4, 5, 6)]  # one has two labels
            return next((values for values in tried if sum(map(bool, self._labels(values))) > 1), tried[0])
        highest = math.floor(math.log10(max(abs(self.bottom), abs(self.top))) + 1e-9)
        if self.kind == "log":
            lowest = math.ceil(math.log10(self.bottom) - 1e-9)
            factors = (1, 2, 5) if (highest - lowest + 1) * 3 <= num_ticks else (1,)
            each = max(1, math.ceil((highest - lowest + 1) / num_ticks))
            values = [f * 10.0**power for power in range(lowest - 1, highest + 1, each) for f in factors]
        else:
            lowest = math.floor(math.log10(self.linear) + 1e-9)
            each = max(1, math.ceil(2 * (highest - lowest + 1) / num_ticks))
            powers = [10.0**power for power in range(highest, lowest, -each)]
            values = [*(-power for power in powers), 0.0, *reversed(powers)]
        if self.kind == "log":  # relative: the ends may be many powers of ten apart
            least, most = self.bottom * (1 - 1e-9), self.top * (1 + 1e-9)
        else:
            slack = 1e-9 * max(abs(self.bottom), abs(self.top))
            least, most = self.bottom - slack, self.top + slack
        return [value for value in values if least <= value <= most]


def scale_of(low: float, high: float, is_log: bool, chosen: YRange = AUTOMATIC, rows: Rows | None = None) -> Scale:
    """The scale of values from low to high, its ends round; logarithmic only where asked for and all are above 0.

    chosen: the ends that the user gave, which are taken as they are. rows: of the chart, in which its ticks are even.
    """
    if rows is not None and chosen == AUTOMATIC and (scale := _even_scale(low, high, is_log, rows)) is not None:
        return scale
    bottom, top = chosen
    low, high = low if bottom is None else bottom, high if top is None else top
    if bottom is not None and not bottom < high:
        high = bottom + (abs(bottom) * 0.1 or 1.0)
    elif top is not None and not low < top:
        low = top - (abs(top) * 0.1 or 1.0)
    scale = _round_scale(low, high, is_log)
    scale = replace(scale, bottom=scale.bottom if bottom is None else bottom, top=scale.top if top is None else top)
    return scale.evenly(rows) if rows is not None and scale.kind == "linear" else scale


def _even_scale(low: float, high: float, is_log: bool, rows: Rows) -> Scale | None:
    """The scale that has ticks at equal distances in these rows; None where there is none."""
    low, high = widened(low, high)
    if not is_log and high - low < 1e-290:  # a step between ticks would round to zero
        return None
    if not is_log:
        found = even_ticks(low, high, rows)
        return Scale("linear", found.bottom, found.top, values=found.values) if found is not None else None
    if low <= 0 or math.log10(high / low) < EVEN_DECADES or not 1e-290 < low < high < 1e290:
        return None
    found = even_ticks(math.log10(low), math.log10(high), rows, is_power=True)
    if found is None:
        return None
    values = tuple(10.0**power for power in found.values if abs(power) < 300)
    return Scale("log", 10.0 ** max(-300, found.bottom), 10.0 ** min(300, found.top), values=values)


def _round_scale(low: float, high: float, is_log: bool) -> Scale:
    if not is_log:
        return Scale("linear", *value_range(low, high))
    if low > 0:
        bottom, top = _round_down(min(low, LARGEST)), _round_up(min(high, LARGEST))
        return Scale("log", bottom, top if top > bottom else bottom * 10)
    largest = min(LARGEST, max(abs(low), abs(high))) or 1.0
    linear = max(1e-300, 10.0 ** (math.floor(math.log10(largest)) - SYMLOG_DECADES))
    bottom = -_round_up(min(-low, LARGEST)) if low < 0 else 0.0
    top = _round_up(min(high, LARGEST)) if high > 0 else 0.0
    return Scale("symlog", bottom, top if top > bottom else bottom + largest, linear)


def _round_down(value: float) -> float:
    """The largest 1, 2 or 5 times a power of ten that a positive value reaches."""
    power = _power(value)
    return max((power * factor for factor in (1, 2, 5, 10) if power * factor <= value * (1 + 1e-9)), default=power / 2)


def _round_up(value: float) -> float:
    """The smallest 1, 2 or 5 times a power of ten that is not below a positive value."""
    power = _power(value)
    return min((power * factor for factor in (1, 2, 5) if power * factor >= value * (1 - 1e-9)), default=power * 10)


def _power(value: float) -> float:
    return float(10.0 ** max(-300, math.floor(math.log10(max(value, 1e-300)))))


def _power_label(value: float) -> str:
    text = number(value) if abs(value) < 10_000 else round_count(value)
    return text.rstrip("0").rstrip(".") if "." in text and text[-1] == "0" else text
