"""Which part of the x axis is visible: arithmetic of zooming and panning."""

from __future__ import annotations

import math
from typing import NamedTuple

from rl_tui.tui.charts.axes import nice_step
from rl_tui.tui.charts.curve import Range

SMALLEST_SHARE = 1e-5  # of the whole axis: no window is narrower
WHOLE_SHARE = 0.999  # a window of that much of the axis is all of it
PAN_SHARE = 0.25  # of the window, by one key


class Viewport(NamedTuple):
    """What a chart shows. shown: its x axis; full: the whole axis; newest: x of the newest point."""

    shown: Range
    full: Range
    newest: float


def viewport_of(window: Range | None, is_live: bool, full: Range, newest: float) -> Viewport:
    """What is visible. A live window keeps its length, and its end moves by a tenth of it at a time."""
    if window is None or not window[1] > window[0]:
        return Viewport(full, full, newest)
    length = _bounded_length(window[1] - window[0], full)
    if is_live:
        grain = nice_step(length, 10)
        return Viewport(clamped((0.0, length), full, math.ceil(newest / grain - 1e-9) * grain), full, newest)
    return Viewport(clamped((window[0], window[0] + length), full), full, newest)


def zoomed(viewport: Viewport, factor: float, center: float) -> Range | None:
    """The window with `factor` times the detail in which `center` keeps its place; None when that is everything."""
    start, end = viewport.shown
    length = _bounded_length((end - start) / factor, viewport.full)
    if length >= (viewport.full[1] - viewport.full[0]) * WHOLE_SHARE:
        return None
    share = min(1.0, max(0.0, (center - start) / (end - start)))
    return clamped((center - share * length, center + (1 - share) * length), viewport.full)


def panned(viewport: Viewport, by: float) -> Range:
    """The window moved by so much of x, as far as there is an axis."""
    start, end = viewport.shown
    return clamped((start + by, end + by), viewport.full)


def clamped(window: Range, full: Range, end: float | None = None) -> Range:
    """The window, moved to `end` if given, within the axis; never longer than it."""
    length = min(window[1] - window[0], full[1] - full[0])
    start = window[0] if end is None else end - length
    start = max(full[0], min(start, full[1] - length))
    return start, start + length


def _bounded_length(length: float, full: Range) -> float:
    whole = full[1] - full[0]
    smallest = max(whole * SMALLEST_SHARE, max(abs(full[0]), abs(full[1])) * 1e-12)
    return min(whole, max(length, smallest))
