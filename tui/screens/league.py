"""Self-play: the league table of every behavior that plays against its earlier policies."""

from __future__ import annotations

from dataclasses import replace

from textual.app import ComposeResult

from rl_tui.engine.session.league_view import RATING
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.charts.figure import Figure
from rl_tui.tui.drawing.lines import Line
from rl_tui.tui.keys.keymap import bindings
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.panes.chart import MetricChart
from rl_tui.tui.panes.league_list import LeagueList
from rl_tui.tui.screens.context import Context
from rl_tui.tui.screens.list_screen import ListScreen


class RatingChart(MetricChart):
    """Of the table that the cursor is in, or else of the first one; its heading names the behavior."""

    def __init__(self, leagues: LeagueList) -> None:
        super().__init__(0, RATING)
        self._list = leagues

    def figure(self, frame: Frame) -> Figure | None:
        """The course of its rating."""
        return super().figure(self._followed(frame))

    def heading(self, frame: Frame) -> str:
        """The metric and the behavior."""
        followed = self._followed(frame)
        name = safe_text(followed.behavior.name) if followed.behavior is not None else ""
        return f" {frame.glyphs.dot} ".join(part for part in (super().heading(followed), name) if part)

    def inputs(self, frame: Frame) -> object:
        """Which behavior it is, too."""
        followed = self._followed(frame)
        return super().inputs(followed), followed.selected

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """The curve, or why there is none."""
        return super().lines(self._followed(frame), width, height)

    def _followed(self, frame: Frame) -> Frame:
        """The frame in which that behavior is selected."""
        behavior = self._list.behavior(frame)
        if behavior is None:
            return frame
        state = replace(frame.state, selected=list(frame.view.behaviors).index(behavior.name))
        return replace(frame, state=state)


class LeagueScreen(ListScreen):
    """enter shows all about the policy below the cursor."""

    BINDINGS = bindings("league")
    places = ("league",)

    def __init__(self, context: Context, name: str) -> None:
        self._leagues = LeagueList()
        super().__init__(context, name, self._leagues)

    def body(self) -> ComposeResult:
        """The tables, a policy in full, and where there is room the course of the rating."""
        yield from super().body()
        yield RatingChart(self._leagues)
