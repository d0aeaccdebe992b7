"""The main screen: everything about the run at one glance, and the keys that act on it."""

from __future__ import annotations

from typing import Protocol

from textual.app import ComposeResult
from textual.containers import Grid, Horizontal, Vertical
from textual.screen import Screen

from engine.session.messages import Command, ExportPolicy, Pause, Resume, SaveCheckpoint
from engine.session.text import safe_text
from engine.session.view import COMMAND_WORDS, RunView
from tui.keymap import bindings
from tui.painting import Piece, places
from tui.panes.base import Frame, Pane, is_over
from tui.panes.behaviors import BehaviorsPane
from tui.panes.chart import MetricChart, RewardChart
from tui.panes.checkpoints import CheckpointsPane
from tui.panes.compact import CompactPane, TooSmallPane
from tui.panes.detail import DetailPane
from tui.panes.devices import DevicesPane
from tui.panes.keys_line import KeysLine
from tui.panes.log import LogPane
from tui.panes.outcome import OutcomeLine
from tui.panes.state_line import StateLine
from tui.panes.summary import SummaryPane
from tui.screens.help import HelpScreen

METRIC_CHARTS = {
    "Episode length": "Environment/Episode Length",
    "Entropy": "Policy/Entropy",
    "Policy loss": "Losses/Policy Loss",
    "Value loss": "Losses/Value Loss",
}


class Commands(Protocol):
    """Whatever takes this screen's commands and its wish for a new picture."""

    view: RunView

    def send(self, command: Command) -> None:
        """Hand the command to the run."""

    def redraw(self) -> None:
        """Draw what is on top, now."""

    def freeze(self) -> None:
        """Hold the picture still, or let it follow again."""


class OverviewScreen(Screen[None]):
    """Owns the panes and which behavior is selected."""

    BINDINGS = list(bindings("overview"))

    def __init__(self, commands: Commands) -> None:
        super().__init__()
        self.selected = 0
        self.outcome = OutcomeLine()
        self._commands = commands
        self._panes: list[Pane] = []

    def compose(self) -> ComposeResult:
        """Every pane of every layout; app.tcss shows those that fit the size."""
        yield StateLine()
        with Horizontal(id="middle"):
            with Vertical(id="left"):
                yield BehaviorsPane()
                yield RewardChart()
            with Vertical(id="right"):
                yield DetailPane()
                yield CheckpointsPane()
                with Grid(id="metrics"):
                    for title, tag in METRIC_CHARTS.items():
                        yield MetricChart(title, tag)
        yield SummaryPane()
        with Vertical(id="lower"):
            yield DevicesPane()
            yield LogPane()
        yield CompactPane()
        yield TooSmallPane()
        yield self.outcome
        yield KeysLine()

    def on_mount(self) -> None:
        """The panes stay the same from now on."""
        self._panes = list(self.query(Pane))

    def draw(self, frame: Frame) -> list[Piece]:
        """Bring every pane up to `frame` and return what is to be painted."""
        if is_over(frame.view) != self.has_class("-over"):
            self.toggle_class("-over")
        where = places(self)
        return [piece for pane in self._panes for piece in pane.draw(frame, where.get(pane))]

    def action_select(self, number: int) -> None:
        """Select the behavior with that number, if there is one."""
        if number <= len(self._commands.view.behaviors):
            self.selected = number - 1
            self._commands.redraw()

    def action_move(self, by: int) -> None:
        """Select a neighbor; the ends are ends."""
        last = max(0, len(self._commands.view.behaviors) - 1)
        self.selected = max(0, min(last, self.selected + by))
        self._commands.redraw()

    def action_pause(self, everything: bool) -> None:
        """Pause what trains, or let go on what is paused."""
        behaviors = list(self._commands.view.behaviors.values())
        concerned = behaviors if everything else behaviors[self.selected : self.selected + 1]
        alive = [behavior for behavior in concerned if behavior.state in ("starting", "training", "paused")]
        is_paused = bool(alive) and all(behavior.state == "paused" for behavior in alive)
        self._ask(Resume(self._target(everything)) if is_paused else Pause(self._target(everything)))

    def action_checkpoint(self, everything: bool) -> None:
        """Save a checkpoint."""
        self._ask(SaveCheckpoint(self._target(everything)))

    def action_export(self, everything: bool) -> None:
        """Export the policy."""
        self._ask(ExportPolicy(self._target(everything)))

    def action_freeze(self) -> None:
        """Hold the picture still, or let it follow."""
        self._commands.freeze()

    def action_help(self) -> None:
        """Show every key."""
        self.app.push_screen(HelpScreen(), callback=lambda _: self._commands.redraw())

    def _target(self, everything: bool) -> str | None:
        names = list(self._commands.view.behaviors)
        return None if everything or not names else names[min(self.selected, len(names) - 1)]

    def _ask(self, command: Pause | Resume | SaveCheckpoint | ExportPolicy) -> None:
        view = self._commands.view
        label = f"{COMMAND_WORDS[type(command).__name__]} {safe_text(command.behavior) if command.behavior else 'all'}"
        if is_over(view):
            self.outcome.notice(f"{label}: not possible, the run is over")
        elif view.run is None:
            self.outcome.notice(f"{label}: not yet, the engine is starting")
        else:
            self.outcome.ask(command.id, label)
            self._commands.send(command)
        self._commands.redraw()
