"""The user's choices on the screens of a run, which are saved per run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.engine.session.messages import LogLevel
from rl_tui.engine.session.view import RunView
from rl_tui.tui.charts.state import ChartState

RunsColumn: TypeAlias = Literal["run", "state", "behaviors", "steps", "best", "last", "age", "took"]


@dataclass(slots=True)
class RunsOrder:
    """The order of the list of runs. is_reversed: from its other end; is_grouped: a line per configuration."""

    column: RunsColumn = "age"
    is_reversed: bool = False
    is_grouped: bool = False


@dataclass(slots=True)
class ScreenState:
    """Owned by the app; changed by actions of screens and panes, read by panes through their Frame.

    filters and cursors: by a pane's topic; a cursor is the key of its entry. marked: keys of rows of the list of runs,
    in the order of their marks.
    """

    selected: int = 0  # index of the behavior that keys act on
    chart: ChartState = field(default_factory=ChartState)
    filters: dict[str, str] = field(default_factory=dict)
    cursors: dict[str, str] = field(default_factory=dict)
    log_level: LogLevel = "info"
    log_is_of_selected: bool = False
    runs: RunsOrder = field(default_factory=RunsOrder)
    marked: list[str] = field(default_factory=list)

    def selected_in(self, view: RunView) -> int:
        """Index of the selected behavior among those of the run."""
        return min(self.selected, max(0, len(view.behaviors) - 1))

    def behavior_in(self, view: RunView) -> BehaviorView | None:
        """The selected behavior; None while the run has none."""
        behaviors = list(view.behaviors.values())
        return behaviors[self.selected_in(view)] if behaviors else None
