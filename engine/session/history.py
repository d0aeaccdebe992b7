"""Curves of bounded size that keep every spike."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, TypeAlias

if TYPE_CHECKING:
    Doubles: TypeAlias = array[float]
    Counts: TypeAlias = array[int]
else:  # Python 3.11 knows no array[float]; for engine/session/plain.py, with the type code
    Doubles, Counts = Annotated[array, "d"], Annotated[array, "Q"]

MOST_COUNTED = 2**62  # values of a bucket: two of these numbers can be added in its array
HISTORY_POINTS = 4096  # more than any terminal has columns, so that zooming in shows more


def _doubles() -> array[float]:
    return array("d")


@dataclass(slots=True)
class History:
    """A curve of at most HISTORY_POINTS buckets from the first value on: when it is full, neighbors are merged.

    A bucket has its end (step, wall time) and the lowest, highest and mean of its finite values, NaN without any;
    counts: of how many values it is, of which so many were `broken`, not finite. Steps and times never decrease. numpy
    can view the arrays without a copy; such a view must be released before the next change.
    """

    steps: Doubles = field(default_factory=_doubles)
    times: Doubles = field(default_factory=_doubles)
    low: Doubles = field(default_factory=_doubles)
    high: Doubles = field(default_factory=_doubles)
    mean: Doubles = field(default_factory=_doubles)
    counts: Counts = field(default_factory=lambda: array("Q"))
    broken: Counts = field(default_factory=lambda: array("Q"))
    stride: int = 1  # values in a full bucket, at least
    filling: int = 0  # values in the newest bucket while it is not full; 0 when it is

    def append(self, step: float, time: float, value: float, count: int = 1) -> None:
        """Add one value, after dropping values beyond its step. Times do not decrease if the clock was set back.

        count: how many values it is the mean of.
        """
        if self.steps:
            if step < self.steps[-1]:
                self.rewind(step)
            time = max(time, self.times[-1]) if self.times else time
        if self.filling == 0:
            self._begin_bucket()
        self.steps[-1], self.times[-1] = step, time
        self._add(value, count)
        self.filling = self.counts[-1] if self.counts[-1] < self.stride else 0

    def rewind(self, step: float) -> None:
        """Drop every bucket that ends beyond `step`."""
        end = bisect_right(self.steps, step)
        if end < len(self.steps):
            self.filling = 0
        if end == 0:
            self.stride = 1  # an empty curve can be fine again
        for column in (self.steps, self.times, self.low, self.high, self.mean, self.counts, self.broken):
            del column[end:]

    def copy(self) -> History:
        """Another one with the same buckets."""
        numbers = self.steps[:], self.times[:], self.low[:], self.high[:], self.mean[:]
        return History(*numbers, self.counts[:], self.broken[:], self.stride, self.filling)

    def __len__(self) -> int:
        return len(self.steps)

    def _begin_bucket(self) -> None:
        if len(self.steps) >= HISTORY_POINTS:
            self._halve()
        for column in (self.steps, self.times, self.low, self.high, self.mean):
            column.append(math.nan)
        self.counts.append(0)
        self.broken.append(0)

    def _add(self, value: float, count: int) -> None:
        num_before = self.counts[-1] - self.broken[-1]
        self.counts[-1] = min(self.counts[-1] + count, MOST_COUNTED)
        if not math.isfinite(value):
            self.broken[-1] = min(self.broken[-1] + count, MOST_COUNTED)
            return
        if num_before == 0:
            self.low[-1] = self.high[-1] = self.mean[-1] = value
            return
        self.low[-1], self.high[-1] = min(self.low[-1], value), max(self.high[-1], value)
        share = (num_before + count) / count
        self.mean[-1] += value / share - self.mean[-1] / share  # divided first: no overflow

    def _halve(self) -> None:
        """Merge every two buckets, as if all values had come in pairs."""
        pairs = range(0, len(self.steps) - 1, 2)
        merged_mean = _doubles()
        for at in pairs:
            first, second = (self.counts[each] - self.broken[each] for each in (at, at + 1))
            merged_mean.append(_weighted(self.mean[at], first, self.mean[at + 1], second))
        self.low = array("d", [_either(min, self.low[at], self.low[at + 1]) for at in pairs])
        self.high = array("d", [_either(max, self.high[at], self.high[at + 1]) for at in pairs])
        self.counts = array("Q", [min(self.counts[at] + self.counts[at + 1], MOST_COUNTED) for at in pairs])
        self.broken = array("Q", [min(self.broken[at] + self.broken[at + 1], MOST_COUNTED) for at in pairs])
        self.mean = merged_mean
        self.steps, self.times = self.steps[1::2], self.times[1::2]
        self.stride *= 2


def _either(choose: Callable[[float, float], float], one: float, other: float) -> float:
    if math.isnan(one) or math.isnan(other):
        return other if math.isnan(one) else one
    return choose(one, other)


def _weighted(one: float, num_one: int, other: float, num_other: int) -> float:
    if num_one <= 0 or num_other <= 0:
        return other if num_one <= 0 else one
    return one * (num_one / (num_one + num_other)) + other * (num_other / (num_one + num_other))
