"""Curves as dots, and dots as braille.  Shapes: R text rows, C text columns, D dot columns."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from rl_tui.tui.charts.arrays import Bools, Codes, Floats, Indices, np
from rl_tui.tui.charts.curve import Range

MIDDLE = 0.5 + 1e-6  # round values often lie between two rows; noise in the last digit must not part them
BRAILLE = 0x2800
ROWS_IN_CELL, COLUMNS_IN_CELL = 4, 2

_BITS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))  # Unicode's order of dots: left column, right column


class Bars(NamedTuple):
    """i64[D]: in each dot column the dots from row `first`, 0 at the top, up to but without row `past`."""

    first: Indices
    past: Indices


def dot_rows(values: Floats, y_range: Range, num_rows: int) -> Floats:
    """The row of dots on which each value lies, 0 at the top; beyond y_range on the edge, NaN for NaN."""
    bottom, top = y_range
    scale = (num_rows - 1) / max(top - bottom, 1e-300)
    inside = np.minimum(np.maximum(values, bottom), top)  # first, for what is clipped may lie as far as a float can
    rows = np.floor((top - inside) * scale + MIDDLE)
    return np.asarray(np.minimum(rows, num_rows - 1), dtype=np.float64)


def bars(low: Floats, high: Floats, y_range: Range, num_rows: int) -> Bars:
    """Each column filled from low to high and up to its neighbor's end, so that a steep curve has no holes.

    low, high: f64[D], NaN where nothing is drawn. Values beyond y_range sit on the edge.
    """
    first = dot_rows(high, y_range, num_rows)
    last = first if high is low else dot_rows(low, y_range, num_rows)
    before_first, before_last = _shifted(first), _shifted(last)
    first_drawn = np.where(before_last < first, before_last + 1, first)
    last_drawn = np.where(before_first > last, before_first - 1, last)
    gap = np.isnan(first)
    return Bars(np.where(gap, 0, first_drawn).astype(np.int64), np.where(gap, 0, last_drawn + 1).astype(np.int64))


def _shifted(values: Floats) -> Floats:
    """Each column's left neighbor; NaN for the first."""
    return np.concatenate(([np.nan], values[:-1]))


def braille_codes(drawn: Bars, num_rows: int) -> Codes:
    """u8[R, C] of bars over 4 R rows: add to U+2800 for the character. R: num_rows."""
    tops = np.arange(num_rows)[:, None] * ROWS_IN_CELL
    first = np.minimum(np.maximum(drawn.first - tops, 0), ROWS_IN_CELL)
    past = np.minimum(np.maximum(drawn.past - tops, 0), ROWS_IN_CELL)
    bits = _filled_bits()
    left, right = (bits[side, first[:, side::2], past[:, side::2]] for side in range(COLUMNS_IN_CELL))
    return np.asarray(left | right, dtype=np.uint8)


@cache
def _filled_bits() -> Codes:
    """u8[2, 5, 5] by column, first dot and one past the last dot: the bits of a column that is filled between them."""
    filled = [[[sum(bits[first:past]) for past in range(5)] for first in range(5)] for bits in _BITS]
    return np.array(filled, dtype=np.uint8)


def filled(drawn: Bars, num_rows: int) -> Bools:
    """bool[R, D]: which cells of one dot each the bars fill."""
    rows = np.arange(num_rows)[:, None]
    cells: Bools = (rows >= drawn.first) & (rows < drawn.past)
    return cells
