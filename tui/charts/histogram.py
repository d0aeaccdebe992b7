"""A distribution as lines of text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from rl_tui.engine.session.messages import Histogram
from rl_tui.tui.charts.arrays import np
from rl_tui.tui.charts.percent import bar
from rl_tui.tui.drawing.glyphs import Glyphs
from rl_tui.tui.drawing.lines import Line, Span, Tone, clip, flush, line
from rl_tui.tui.drawing.text import count, number, right

FILLED = 0.8  # share of the width that bins take at least
NUMBER_WIDTH = 8  # of the longest that `number` writes
LISTED_BINS = 10
SINGLE_BAR = 0.15  # share of the width that a bar has to which every value belongs


class Bin(NamedTuple):
    """How many values lie between two."""

    low: float
    high: float
    num: float


def bins_of(histogram: Histogram, width: int) -> list[Bin]:
    """Equal bins, the histogram's own joined until they fill most of `width` cells, each as wide as the others.

    One bin where every value is the same; none where there is no value, an infinite one, or no room.
    """
    low, high, counts = histogram.minimum, histogram.maximum, histogram.counts
    if width < 1 or not counts or not max(counts) > 0 or not math.isfinite(high - low):
        return []
    if high <= low:
        return [Bin(low, high, sum(counts))]
    numbers = [each for each in range(1, len(counts) + 1) if len(counts) % each == 0 and each <= width]
    num_bins = max(each for each in numbers if width // each * each >= FILLED * width)  # a single one always fills it
    size, span = len(counts) // num_bins, (high - low) / num_bins
    return [
        Bin(low + at * span, low + (at + 1) * span, sum(counts[at * size : (at + 1) * size])) for at in range(num_bins)
    ]


def gutter_of(histogram: Histogram) -> int:
    """Cells left of the columns: the most that a bin may count, a blank and the axis."""
    return len(count(sum(histogram.counts))) + 2


def histogram_chart(
    bins: Sequence[Bin], gutter: int, width: int, height: int, glyphs: Glyphs, tone: Tone
) -> list[Line]:
    """`height` lines of at most `width` cells: columns as high as the counts, which stand beside them, and their range
    below. Empty when there is no room. A bin with anything in it is never drawn empty. Where every value is the same,
    there is one bar in the middle, above that value."""
    room, num_rows = width - gutter, height - 1
    if room < max(2, len(bins)) or num_rows < 1 or not bins:
        return []
    is_single = len(bins) == 1 and bins[0].low == bins[0].high
    counts = np.array([each.num for each in bins], dtype=np.float64)
    share = np.repeat(counts / counts.max(), room // len(bins))
    if is_single:
        num_cells = max(1, round(room * SINGLE_BAR))
        aside = (room - num_cells) // 2
        share[:aside], share[aside + num_cells :] = 0.0, 0.0
    num_levels = len(glyphs.levels) + 1
    eighths = np.where(share > 0, np.maximum(np.rint(share * num_rows * num_levels), 1), 0).astype(np.int64)
    signs = " " + glyphs.levels + glyphs.full
    rows = []
    for row in range(num_rows):
        here = np.clip(eighths - (num_rows - 1 - row) * num_levels, 0, num_levels)
        label = count(counts.max()) if row == 0 else "0" if row == num_rows - 1 else ""
        axis = f"{right(label, gutter - 2)} {glyphs.tick if label else glyphs.wall}"
        rows.append(line(Span(axis, "dim"), Span("".join(signs[level] for level in here.tolist()), tone)))
    if is_single:
        return [*rows, line(Span(" " * gutter + number(bins[0].low).center(room)[:room].rstrip(), "dim"))]
    ends = flush(line(Span(number(bins[0].low), "dim")), line(Span(number(bins[-1].high), "dim")), len(share))
    return [*rows, line(" " * gutter, *clip(ends, len(share), glyphs.ellipsis))]


def histogram_rows(histogram: Histogram, width: int, glyphs: Glyphs, tone: Tone) -> list[Line]:
    """A line for each of at most LISTED_BINS bins, the highest returns first: its range, a bar, its count."""
    bins = bins_of(histogram, LISTED_BINS)
    most = max((each.num for each in bins), default=0)
    rows = []
    for each in reversed(bins):
        ends = f" {right(number(each.low), NUMBER_WIDTH)} to {right(number(each.high), NUMBER_WIDTH)}  "
        amount = right(count(each.num), gutter_of(histogram) - 1)
        rows.append(
            line(Span(ends, "dim"), *bar(each.num / most, width - len(ends) - len(amount) - 1, glyphs, tone), amount)
        )
    return rows


def mean_and_deviation(count: int, total: float, total_squares: float) -> tuple[float, float]:
    """Of `count` values (at least one) from their sum and the sum of their squares."""
    mean = total / count
    return mean, math.sqrt(max(0.0, total_squares / count - mean * mean))
