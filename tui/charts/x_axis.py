"""The x axis: steps, the time of day, or the time since the start.  x is in steps or seconds."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import NamedTuple

from rl_tui.tui.charts.axes import grown, nice_step, step_range, ticks
from rl_tui.tui.charts.curve import Range, XAxis

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
_CLOCK_STEPS = (
    1.0, 2.0, 5.0, 10.0, 15.0, 30.0, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
    HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY,
)  # fmt: skip
_UNITS = ("", "k", "M", "G", "T", "P")
NAMES = {"steps": "steps", "wall": "time of day", "relative": "time since the start"}


class Tick(NamedTuple):
    """A place on an axis, and what stands there."""

    at: float
    label: str


def full_range(extents: Sequence[Range], x_axis: XAxis) -> Range | None:
    """(start, end) around curves from first to last x; the end is round, so that it moves rarely. None without any."""
    if not extents:
        return None
    first, last = min(first for first, _ in extents), max(last for _, last in extents)
    if x_axis == "steps":
        return step_range(first, last)
    start = 0.0 if x_axis == "relative" and 0 <= first < last / 2 else first
    return start, grown(start, last, clock_step(max(last - start, 1.0), 10))


def x_ticks(x_range: Range, x_axis: XAxis, num_ticks: int) -> list[Tick]:
    """Round places within the range and their labels."""
    start, end = x_range
    if x_axis == "steps":
        places = ticks(start, end, num_ticks)
        step = places[1] - places[0] if len(places) > 1 else end - start
        return [Tick(at, step_label(at, step)) for at in places]
    step = clock_step(end - start, num_ticks)
    offset = time.localtime(start).tm_gmtoff if x_axis == "wall" else 0.0
    first, last = math.ceil((start + offset) / step - 1e-9), math.floor((end + offset) / step + 1e-9)
    places = [index * step - offset for index in range(first, last + 1)]
    label = clock_label if x_axis == "wall" else span_label
    return [Tick(at, label(at, step)) for at in places]


def x_label(x: float, x_axis: XAxis, grain: float) -> str:
    """A place on the axis in words. grain: what is closer together need not be distinguished."""
    match x_axis:
        case "steps":
            return step_label(x, grain)
        case "wall":
            return time.strftime("%H:%M:%S", time.localtime(x))
        case "relative":
            return span_label(x, 1.0)


def clock_step(span: float, num_steps: int) -> float:
    """The smallest round time that covers `span` seconds in at most `num_steps` steps."""
    rough = span / max(num_steps, 1)
    if rough < 1:
        return nice_step(span, num_steps)
    return next((step for step in _CLOCK_STEPS if step >= rough * (1 - 1e-9)), nice_step(span / DAY, num_steps) * DAY)


def step_label(step: float, grain: float) -> str:
    """A count with a unit, exact to `grain`: 50k, 1.234M."""
    power = min(int(math.log10(max(abs(step), 1.0)) / 3 + 1e-9), len(_UNITS) - 1)
    unit = 1000.0**power
    decimals = min(9, max(0, math.ceil(math.log10(unit / max(grain, 1e-12)) - 1e-9)))
    text = f"{step / unit:.{decimals}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + _UNITS[power]


def clock_label(at: float, step: float) -> str:
    """Local time as 14:05, with seconds where the step is shorter than a minute; the date at midnight."""
    local = time.localtime(at)
    if step >= DAY or (local.tm_hour, local.tm_min, local.tm_sec) == (0, 0, 0):
        return time.strftime("%b %d", local)
    return time.strftime("%H:%M:%S" if step < MINUTE else "%H:%M", local)


def span_label(seconds: float, step: float) -> str:
    """A span of time: 45s, 12m, 12m30, 1h30, 2d06h."""
    sign, total = ("-" if seconds < -0.5 * min(step, 1.0) else ""), abs(seconds)
    if total == 0:
        return "0"
    if step < 1:
        return f"{sign}{total:.{math.ceil(-math.log10(step) - 1e-9)}f}s"
    whole = round(total)
    minutes, hours, days = whole // 60 % 60, whole // 3600, whole // 86400
    if whole < 60:
        return f"{sign}{whole}s"
    if hours == 0:
        return f"{sign}{minutes}m" + (f"{whole % 60:02}" if step < MINUTE else "")
    if hours < 48:
        return f"{sign}{hours}h" + (f"{minutes:02}" if step < HOUR else "")
    return f"{sign}{days}d" + (f"{hours % 24:02}h" if step < DAY else "")
