"""Self-play: the league table of every behavior that plays against its earlier policies."""

from __future__ import annotations

from textual.app import ComposeResult

from rl_tui.engine.session.league_view import RATING
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.keys.keymap import bindings
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.panes.chart import MetricChart
from rl_tui.tui.panes.league_list import LeagueList
from rl_tui.tui.screens.context import Context
from rl_tui.tui.screens.list_screen import ListScreen


class RatingChart(MetricChart):
    """Of the selected behavior, which its heading names."""

    def __init__(self) -> None:
        super().__init__(0, RATING)

    def heading(self, frame: Frame) -> str:
        """The metric and the behavior."""
        name = safe_text(frame.behavior.name) if frame.behavior is not None else ""
        return f" {frame.glyphs.dot} ".join(part for part in (super().heading(frame), name) if part)


class LeagueScreen(ListScreen):
    """enter shows all about the policy below the cursor."""

    BINDINGS = bindings("league")
    places = ("league",)

    def __init__(self, context: Context, name: str) -> None:
        super().__init__(context, name, LeagueList())

    def body(self) -> ComposeResult:
        """The tables, a policy in full, and where there is room the course of the selected behavior's rating."""
        yield from super().body()
        yield RatingChart()
