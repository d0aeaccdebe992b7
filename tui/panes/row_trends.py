"""The course of each behavior's returns in one line of the table: a sparkline and a direction."""

from __future__ import annotations

from dataclasses import dataclass

from engine.session.view import BehaviorView
from tui.charts.arrays import np
from tui.charts.sparkline import by_time, sparkline
from tui.charts.trend import TREND_SECONDS, trend

RENEWED_SECONDS = 3.0  # its newest cell stands for more; with twelve behaviors it is a fifth of what a picture costs
LONG = 256  # points from which a history is worth that


@dataclass(frozen=True, slots=True)
class RowTrend:
    """cells: the sparkline; direction: 1 up, -1 down, 0 level or unknown."""

    cells: str
    direction: int


class RowTrends:
    """Owns the newest of each behavior, and makes those of long histories anew every RENEWED_SECONDS at most."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[RowTrend, tuple[int, str], float, float]] = {}

    def of(self, behavior: BehaviorView, width: int, levels: str, now: float) -> RowTrend:
        """In `width` cells of these levels; at once where they change, or where the history was cut."""
        history = behavior.returns
        newest = history.times[-1] if len(history.times) else 0.0
        kept = self._kept.get(behavior.name)
        if kept is not None and len(history.times) >= LONG:
            made, look, until, made_at = kept
            if look == (width, levels) and newest >= until and 0 <= now - made_at < RENEWED_SECONDS:
                return made
        # Copies: an array that numpy views cannot grow, and the view goes on folding.
        times, values = np.array(history.times), np.array(history.mean)
        curve = by_time(times, values, width, TREND_SECONDS)
        made = RowTrend(sparkline(curve, width, levels), trend(times, values).direction)
        self._kept[behavior.name] = (made, (width, levels), newest, now)
        return made
