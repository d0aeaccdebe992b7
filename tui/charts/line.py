"""A line chart as lines of text: the spread of the values faint, their moving average bright."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from tui.charts.axes import step_range, ticks, value_range
from tui.charts.raster import braille_codes, braille_text, raster
from tui.charts.sampling import Bools, Columns, Floats, columns, joined, smoothed
from tui.glyphs import Glyphs
from tui.lines import Line, Span, Tone, line
from tui.text import number, right, round_count

GUTTER = 8  # cells left of the plot: a value and the axis
SMOOTHING = 0.7  # per dot column of the moving average


@dataclass(frozen=True, slots=True)
class Mark:
    """A sign on the step axis."""

    step: float
    glyph: str
    tone: Tone


@dataclass(frozen=True, slots=True)
class Look:
    """How a chart is drawn. spread: also draw lowest to highest, which needs color to be told from the line."""

    glyphs: Glyphs
    tone: Tone = "series-1"
    spread: bool = True


def line_chart(xs: Floats, ys: Floats, width: int, height: int, look: Look, marks: Sequence[Mark] = ()) -> list[Line]:
    """`height` lines of at most `width` cells; empty when there is no finite value or no room.

    xs: f64[N] not decreasing, ys: f64[N]. A gap stands where values are not finite, with a sign on the axis below it.
    """
    plot_width, plot_height = width - GUTTER, height - 1
    finite = ys[np.isfinite(ys)]
    if plot_width < 1 or plot_height < 1 or len(finite) == 0:
        return []
    dots = (2, 4) if look.glyphs.braille else (1, 1)
    x_range = step_range(float(xs[0]), float(xs[-1]))
    sampled = columns(xs, ys, x_range, plot_width * dots[0])
    bottom, top = value_range(*_limits(sampled))
    plot = _plot(sampled, (bottom, top), plot_height, dots, look)
    gutter = _gutter(bottom, top, plot_height, look.glyphs)
    broken = sorted(set((np.flatnonzero(sampled.broken) // dots[0]).tolist()))
    return [
        *(line(*gutter[row], *plot[row]) for row in range(plot_height)),
        _axis(x_range, plot_width, look.glyphs, marks, broken),
    ]


def _limits(sampled: Columns) -> tuple[float, float]:
    return float(np.nanmin(sampled.low)), float(np.nanmax(sampled.high))


def _plot(
    sampled: Columns, y_range: tuple[float, float], num_rows: int, dots: tuple[int, int], look: Look
) -> list[Line]:
    mean = smoothed(joined(sampled.mean, sampled.broken), SMOOTHING)
    curve = raster(mean, mean, y_range, num_rows * dots[1])
    low, high = joined(sampled.low, sampled.broken), joined(sampled.high, sampled.broken)
    spread = raster(low, high, y_range, num_rows * dots[1]) if look.spread else np.zeros_like(curve)
    if not look.glyphs.braille:
        return [_cells(_ascii(curve[row], spread[row]), curve[row], look.tone) for row in range(num_rows)]
    curve_codes, spread_codes = braille_codes(curve), braille_codes(spread)
    on_curve = curve_codes > 0
    shown = np.where(on_curve, curve_codes, spread_codes)
    return [_cells(braille_text(shown[row]), on_curve[row], look.tone) for row in range(num_rows)]


def _ascii(curve: Bools, spread: Bools) -> str:
    codes: NDArray[np.uint8] = np.where(curve, ord("*"), np.where(spread, ord("."), ord(" "))).astype(np.uint8)
    return codes.tobytes().decode("ascii")


def _cells(text: str, on_curve: Bools, tone: Tone) -> Line:
    """One row of the plot, as few spans as its tones allow; blanks join whatever is before them."""
    spans: list[Span] = []
    tones: list[Tone] = [tone if bright else "faint" for bright in on_curve.tolist()]
    for at, char in enumerate(text):
        if char == " " and at:
            tones[at] = tones[at - 1]
    at = 0
    for key, group in groupby(tones):
        length = len(list(group))
        spans.append(Span(text[at : at + length], key))
        at += length
    return tuple(spans)


def _gutter(bottom: float, top: float, num_rows: int, glyphs: Glyphs) -> list[Line]:
    values = ticks(bottom, top, max(2, num_rows // 3))
    step = values[1] - values[0] if len(values) > 1 else top - bottom
    labels: dict[int, str] = {}
    for value in values:
        row = round((top - value) / (top - bottom) * (num_rows - 1))
        labels.setdefault(row, _value_label(value, step))
    return [
        line(Span(right(labels[row], GUTTER - 2) + " " + glyphs.tick, "dim"))
        if row in labels
        else line(Span(" " * (GUTTER - 1) + glyphs.wall, "dim"))
        for row in range(num_rows)
    ]


def _value_label(value: float, step: float) -> str:
    """The tick with the decimals that its step needs."""
    if abs(value) < step / 1000:
        return "0"
    if abs(value) >= 10_000:
        return round_count(value)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    text = f"{value:.{decimals}f}"
    return text if len(text) <= GUTTER - 2 and decimals <= 4 else number(value)


def _axis(
    x_range: tuple[float, float], width: int, glyphs: Glyphs, marks: Sequence[Mark], broken: Sequence[int]
) -> Line:
    """The step axis: a label begins at its place; a mark stands at its own or at the next free place to the left."""
    start, end = x_range
    row = [Span(glyphs.floor, "dim")] * width

    def place(x: float) -> int:
        return min(width - 1, max(0, int((x - start) / (end - start) * width)))

    for tick in ticks(start, end, max(1, width // 12)):
        text = round_count(tick)
        at = place(tick)
        if at + len(text) <= width:
            row[at : at + len(text)] = [Span(char, "text") for char in text]
    for mark in marks:
        at = place(mark.step)
        while at > 0 and row[at].tone == "text":
            at -= 1
        if start <= mark.step <= end:
            row[at] = Span(mark.glyph, mark.tone)
    for column in broken:
        row[column] = Span(glyphs.failed, "bad")
    merged = (Span("".join(s.text for s in group), tone) for tone, group in groupby(row, key=lambda s: s.tone))
    return line(Span(" " * (GUTTER - 1) + glyphs.corner, "dim"), *merged)
