"""The dialog before a run is left: how, and what it costs."""

from __future__ import annotations

from typing import Protocol

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen

from engine.session.messages import StopMode
from engine.session.text import safe_text
from engine.session.view import BehaviorView, RunView
from tui.keymap import bindings
from tui.lines import Line, Span, line, state_tone
from tui.painting import Piece, places
from tui.panes.base import Frame, Pane
from tui.text import count, duration, fit, left


class Leaving(Protocol):
    """Whatever can end the run."""

    stop_asked_at: float | None

    def stop(self, mode: StopMode) -> None:
        """Ask the run to stop and leave when it has."""


class LeaveScreen(ModalScreen[None]):
    """Asks; once the stop is asked for, shows each behavior's way to it. Staying is the harmless default."""

    BINDINGS = list(bindings("leaving"))

    def __init__(self, leaving: Leaving) -> None:
        super().__init__()
        self._leaving = leaving
        self._pane = LeavePane(leaving)

    def compose(self) -> ComposeResult:
        """One box."""
        with Vertical(classes="dialog"):
            yield self._pane

    def draw(self, frame: Frame) -> list[Piece]:
        """Bring the box up to `frame` and return what is to be painted."""
        return self._pane.draw(frame, places(self).get(self._pane))

    def action_stop_with_checkpoint(self) -> None:
        """Save and stop; a second time changes nothing."""
        if self._leaving.stop_asked_at is None:
            self._leaving.stop("checkpoint")

    def action_stop_now(self) -> None:
        """Stop without saving."""
        self._leaving.stop("now")

    def action_stay(self) -> None:
        """Back to the overview."""
        self.dismiss()


class LeavePane(Pane):
    """The choices, or the progress of stopping."""

    def __init__(self, leaving: Leaving) -> None:
        super().__init__()
        self._leaving = leaving

    def wanted_height(self, frame: Frame, width: int) -> int:
        """All of it."""
        return len(self.lines(frame, width, 20))

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """The choices first; once one is made, where each behavior stands."""
        asked_at = self._leaving.stop_asked_at
        return choices(frame) if asked_at is None else progress(frame, asked_at)


def choices(frame: Frame) -> list[Line]:
    """What can be done and what each costs."""
    number_of = sum(behavior.state in ("training", "paused") for behavior in frame.view.behaviors.values())
    training = f"{number_of} behaviors are" if number_of != 1 else "1 behavior is"
    has_begun = any(behavior.state != "starting" for behavior in frame.view.behaviors.values())
    idle = "Nothing trains any more" if has_begun else "The run has just begun"
    title = f"Leave? {training} training" if number_of else f"Leave? {idle}"
    return [
        line(Span(title, "strong")),
        line(),
        line(Span("  s    ", "accent"), "checkpoint and stop"),
        line(Span("  k    ", "accent"), "stop now", Span(f"  {cost_of_stopping(frame)}", "warning")),
        line(Span(f"{frame.glyphs.marker} esc  ", "accent"), Span("stay", "strong"), Span("  training goes on", "dim")),
    ]


def cost_of_stopping(frame: Frame) -> str:
    """How much work would be gone."""
    lost = lost_seconds(frame.view, frame.now)
    if lost is None:
        return "nothing is lost"
    return f"loses {duration(lost[0])}" + (" since the last checkpoint" if lost[1] else ": no checkpoint yet")


def lost_seconds(view: RunView, now: float) -> tuple[float, bool] | None:
    """(seconds of the behavior that would lose most, whether it has a checkpoint); None when none would lose any."""
    worst: tuple[float, bool] | None = None
    for behavior in view.behaviors.values():
        if behavior.state not in ("training", "paused") or view.started_at is None:
            continue
        saved_at = behavior.checkpoints[-1][0] if behavior.checkpoints else view.started_at
        lost = max(0.0, now - saved_at), bool(behavior.checkpoints)
        worst = lost if worst is None or lost[0] > worst[0] else worst
    return worst


def progress(frame: Frame, asked_at: float) -> list[Line]:
    """Each behavior's way to its last checkpoint."""
    rows = [_behavior_progress(behavior, frame, asked_at) for behavior in frame.view.behaviors.values()]
    waited = duration(frame.now - asked_at)
    return [
        line(Span(f"{frame.glyphs.waiting} Saving and stopping, {waited}", "strong")),
        line(),
        *rows[:8],
        *([line(Span(f"  and {len(rows) - 8} more", "dim"))] if len(rows) > 8 else []),
        line(),
        line(Span("  k    ", "accent"), "stop now", Span("  gives up what is not saved yet", "warning")),
        line(Span("  esc  ", "accent"), "look on", Span("  the screen closes when all is saved", "dim")),
    ]


def _behavior_progress(behavior: BehaviorView, frame: Frame, asked_at: float) -> Line:
    glyphs = frame.glyphs
    name = left(fit(safe_text(behavior.name), 16, glyphs.ellipsis), 17)
    saved = next((event for at, event in reversed(behavior.checkpoints) if at >= asked_at), None)
    if saved is not None:
        return line(Span(f"  {glyphs.done} ", "good"), name, f"saved at step {count(saved.step)}")
    if behavior.state in ("finished", "failed"):
        return line(Span(f"  {glyphs.of(behavior.state)} ", state_tone(behavior.state)), name, behavior.state)
    return line(Span(f"  {glyphs.waiting} ", "wait"), name, "saving")
