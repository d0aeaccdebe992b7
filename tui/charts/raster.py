"""Curves as dots, and dots as braille.  Shapes: R text rows, C text columns, D dot columns."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tui.charts.sampling import Bools, Floats

Codes: TypeAlias = NDArray[np.uint8]

MIDDLE = 0.5 + 1e-6  # round values often lie between two rows; noise in the last digit must not part them

_BITS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]], dtype=np.uint8)  # Unicode's order of dots


def raster(low: Floats, high: Floats, y_range: tuple[float, float], num_rows: int) -> Bools:
    """Dots bool[num_rows, D], top row first: each column filled from low to high and up to its neighbor's end.

    low, high: f64[D], NaN where nothing is drawn. Values beyond y_range sit on the edge.
    """
    bottom, top = y_range
    scale = (num_rows - 1) / max(top - bottom, 1e-300)
    with np.errstate(invalid="ignore"):
        first = np.clip(np.floor((top - high) * scale + MIDDLE), 0, num_rows - 1)
        last = np.clip(np.floor((top - low) * scale + MIDDLE), 0, num_rows - 1)
    before_first, before_last = _shifted(first), _shifted(last)
    first_drawn = np.fmin(first, np.where(before_last < first, before_last + 1, first))
    last_drawn = np.fmax(last, np.where(before_first > last, before_first - 1, last))
    rows = np.arange(num_rows)[:, None]
    dots: Bools = (rows >= first_drawn) & (rows <= last_drawn)  # NaN compares false: a gap stays empty
    return dots


def _shifted(values: Floats) -> Floats:
    """Each column's left neighbor; NaN for the first."""
    return np.concatenate(([np.nan], values[:-1]))


def braille_codes(dots: Bools) -> Codes:
    """u8[R, C] of dots bool[4 R, 2 C]: add to U+2800 for the character."""
    num_rows, num_columns = dots.shape[0] // 4, dots.shape[1] // 2
    blocks = dots[: num_rows * 4, : num_columns * 2].reshape(num_rows, 4, num_columns, 2)
    bits = blocks * _BITS[None, :, None, :]
    return np.asarray(bits.sum(axis=(1, 3)), dtype=np.uint8)


def braille_text(codes: Codes) -> str:
    """Characters of one row of codes u8[C]; a cell without dots is a space."""
    points = np.where(codes == 0, 0x20, codes.astype(np.uint32) + 0x2800).astype("<u4")
    return points.tobytes().decode("utf-32-le")
