"""A curve in one line of text, and the direction in which it goes."""

from __future__ import annotations

import numpy as np

from tui.charts.sampling import LARGEST, Floats

TREND_POINTS = 40  # points on either side that are compared


def sparkline(values: Floats, width: int, levels: str) -> str:
    """Exactly `width` characters, newest at the right end; blank before the first value and where none is finite.

    values: f64[N]; only as many of the newest are drawn as give each cell at least one and at most 8 of them.
    """
    if len(values) == 0 or width < 1:
        return " " * max(width, 0)
    per_cell = min(8, max(1, len(values) // width))
    num_cells = -(-len(values) // per_cell)
    first = max(0, num_cells - width) * per_cell  # cells keep their points, so only the newest one changes
    heights = _means(values[first:], per_cell)
    finite = heights[np.isfinite(heights)]
    if len(finite) == 0:
        return " " * width
    low, span = float(finite.min()), float(np.ptp(finite))
    if span <= 1e-12 * float(np.abs(finite).max()):  # level but for the last digits
        ranks = np.full(len(heights), (len(levels) - 1) // 2)
    else:
        ranks = np.rint(np.nan_to_num((heights - low) / span) * (len(levels) - 1)).astype(np.int64)
    known = np.isfinite(heights)
    return "".join(levels[rank] if is_known else " " for rank, is_known in zip(ranks, known, strict=True)).rjust(width)


def _finite(values: Floats) -> Floats:
    """The finite ones, small enough to be added up."""
    return np.clip(values[np.isfinite(values)], -LARGEST, LARGEST)


def _means(values: Floats, per_cell: int) -> Floats:
    """The mean of the finite ones of every `per_cell` values, the last of which may be fewer; NaN where none is."""
    padded = np.full(-(-len(values) // per_cell) * per_cell, np.nan)
    padded[: len(values)] = values
    cells = np.clip(padded, -LARGEST, LARGEST).reshape(-1, per_cell)
    known = np.isfinite(padded).reshape(-1, per_cell)
    number = known.sum(1)
    total = np.where(known, cells / np.maximum(number, 1)[:, None], 0.0).sum(1)  # divided first: large ones overflow
    return np.where(number > 0, total, np.nan)


def trend(values: Floats) -> int:
    """1 rising, -1 falling, 0 level or unknown: the newest points against as many before them.

    A change counts from a fiftieth of the range that these points span.
    """
    newest = _finite(values)[-2 * TREND_POINTS :]
    half = len(newest) // 2
    if half < 3:
        return 0
    change = float(newest[-half:].mean()) - float(newest[-2 * half : -half].mean())
    return int(np.sign(change)) if abs(change) > 0.02 * float(np.ptp(newest)) else 0
