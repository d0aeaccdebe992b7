"""The course of each behavior's returns, or of its rating, in one line of the table: a sparkline and a direction."""

from __future__ import annotations

from dataclasses import dataclass

from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.tui.charts.arrays import np
from rl_tui.tui.charts.sparkline import by_steps, sparkline
from rl_tui.tui.charts.trend import trend

RENEWED_SECONDS = 2.0  # its newest cell stands for more; with twelve behaviors it is a fifth of what a picture costs
MOST_AT_ONCE = 4  # in one picture, so that none costs much more than the others
LONG = 256  # points from which a history is worth that


@dataclass(frozen=True, slots=True)
class RowTrend:
    """cells: the sparkline of all steps; direction: now 1 up, -1 down, 0 level or unknown."""

    cells: str
    direction: int


class RowTrends:
    """Owns the newest of each behavior; those of long histories are made again every RENEWED_SECONDS, a few at once."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[RowTrend, tuple[int, str], float, float]] = {}
        self._drawn_at = 0.0
        self._num_renewed = 0  # in the picture drawn then

    def of(self, behavior: BehaviorView, width: int, levels: str, now: float) -> RowTrend:
        """In `width` cells of these levels; at once where they change, or where the history was cut."""
        if now != self._drawn_at:
            self._drawn_at, self._num_renewed = now, 0
        history = behavior.course
        newest = history.steps[-1] if len(history) else 0.0
        kept = self._kept.get(behavior.name)
        if kept is not None and len(history) >= LONG:
            made, look, until, made_at = kept
            is_young = now - made_at < RENEWED_SECONDS or self._num_renewed >= MOST_AT_ONCE
            if look == (width, levels) and newest >= until and now >= made_at and is_young:
                return made
            self._num_renewed += 1
        # Copies: an array that numpy views cannot grow, and the view goes on folding.
        steps, values = np.array(history.steps), np.array(history.mean)
        curve = by_steps(steps, values, width)
        direction = trend(steps, values, since=behavior.course_since).direction
        made = RowTrend(sparkline(curve, width, levels), direction)
        self._kept[behavior.name] = (made, (width, levels), newest, now)
        return made
