"""A short stretch of a curve, as the chart draws it: what a legend shows beside its name."""

from __future__ import annotations

from rl_tui.tui.charts.drawing import ASCII_BANDS, ASCII_LINES, DASHES, ChartStyle, band_dots
from rl_tui.tui.charts.raster import BRAILLE

SAMPLE_CELLS = 6  # as long as the longest dash and its gap
LEFT_DOT, RIGHT_DOT = 0x04, 0x20  # of a cell of braille, on its third row


def line_sample(at: int, dash: int, style: ChartStyle, *, is_band: bool = False) -> str:
    """SAMPLE_CELLS cells. at: the place of the curve in its figure; dash: its own; is_band: then also its texture."""
    if not style.glyphs.braille:
        sign, half = ASCII_LINES[at % len(ASCII_LINES)], SAMPLE_CELLS // 2
        return sign * half + ASCII_BANDS[at % len(ASCII_BANDS)] * half if is_band else sign * SAMPLE_CELLS
    on, off = DASHES[(dash if style.has_color else at) % len(DASHES)]
    dots = [column % (on + off) < on for column in range(2 * SAMPLE_CELLS)]
    cells = [
        LEFT_DOT * left + RIGHT_DOT * right for left, right in zip(dots[::2], dots[1::2], strict=True)
    ]  # fmt: skip
    if is_band:
        cells = [dots_of | band_dots(at, style)[column % 2] for column, dots_of in enumerate(cells)]
    return "".join(chr(BRAILLE + dots_of) if dots_of else " " for dots_of in cells)
