"""A distribution as lines of text."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tui.charts.arrays import Floats, np
from tui.glyphs import Glyphs
from tui.lines import Line, Span, Tone, clip, flush, line
from tui.text import number

FILLED = 0.8  # share of the width that bins take at least


def histogram_chart(
    bounds: tuple[float, float], counts: Sequence[float], width: int, height: int, glyphs: Glyphs, tone: Tone
) -> list[Line]:
    """`height` lines of at most `width` cells: columns as high as the counts of equal bins, and their scale below.

    bounds: where the first bin begins and the last one ends. Empty when there is nothing to count or no room. Bins are
    joined until all of them are equally wide on the screen; one with anything in it is never drawn empty.
    """
    low, high = bounds
    if width < 2 or height < 2 or not counts or not max(counts) > 0 or not math.isfinite(low + high):
        return []
    joined = _joined(np.array(counts, dtype=np.float64), width)
    share = np.repeat(joined / joined.max(), width // len(joined))
    num_levels = len(glyphs.levels) + 1
    eighths = np.where(share > 0, np.maximum(np.rint(share * (height - 1) * num_levels), 1), 0).astype(np.int64)
    signs = " " + glyphs.levels + glyphs.full
    rows = [
        line(Span("".join(signs[n] for n in np.clip(eighths - below * num_levels, 0, num_levels).tolist()), tone))
        for below in range(height - 2, -1, -1)
    ]
    ends = flush(line(Span(number(low), "dim")), line(Span(number(high), "dim")), len(share))
    return [*rows, clip(ends, len(share), glyphs.ellipsis)]


def _joined(counts: Floats, width: int) -> Floats:
    """The counts with as few bins made one as lets them fill most of the width."""
    numbers = [number for number in range(1, len(counts) + 1) if len(counts) % number == 0 and number <= width]
    filling = [number for number in numbers if width // number * number >= FILLED * width]
    joined: Floats = counts.reshape(max(filling), -1).sum(1)  # a single bin always fills it
    return joined


def mean_and_deviation(count: int, total: float, total_squares: float) -> tuple[float, float]:
    """Of `count` values (at least one) from their sum and the sum of their squares."""
    mean = total / count
    return mean, math.sqrt(max(0.0, total_squares / count - mean * mean))
