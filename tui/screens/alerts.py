"""Alerts: toasts on the screen, and the bell and desktop notice of the terminal.

Toasts cover the past of a chart, and never the selected or newest line of a list.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from textual.app import App
from textual.geometry import Region
from textual.screen import ModalScreen, Screen

from rl_tui.engine.session.environment_view import bare_reason, worker_word
from rl_tui.engine.session.messages import (
    BehaviorStateChanged,
    CheckpointFailed,
    CheckpointSaved,
    EnvironmentRestarting,
    Event,
    LogEmitted,
    RunStateChanged,
    WarningRaised,
)
from rl_tui.engine.session.states import BAD_ENDS, ENDS
from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import RunView
from rl_tui.tui.drawing.lines import wrap
from rl_tui.tui.drawing.painting import spots, toast_regions
from rl_tui.tui.drawing.text import count, number
from rl_tui.tui.keys.keymap import Keymap
from rl_tui.tui.panes.chart import ChartPane
from rl_tui.tui.panes.checkpoint_list import good_checkpoint
from rl_tui.tui.panes.list import ListPane
from rl_tui.tui.terminal.sequences import notice_sequence
from rl_tui.tui.textual_private import ToastRack, write

TOAST_SECONDS = 8.0
SAVING_SECONDS = 5.0  # after which a failure is shown even if its last checkpoint is still being written
MOST_TOASTS = 3  # in TOAST_SECONDS; the others are counted
TOAST_LINES = 4  # of its text
TOAST_EDGES = 4  # columns: its bar, the blanks around its text, and one for words that break earlier
WIDEST = 56  # columns of a toast
FREQUENT_RESTARTS = "frequent_restarts"  # the kind of a warning
LOWEST = 2  # lines of a toast: its title and one more
NEWEST = 3  # lines at that end of a list where new ones appear, which are never covered


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert. is_loud: also rings the bell, for a user who looks elsewhere."""

    title: str
    text: str
    severity: Literal["error", "warning", "information"]
    is_loud: bool = False


class Alerts:
    """Runs in the app's thread. Owns the alerts that were not shown yet."""

    def __init__(self, app: App[Any], view: RunView, keymap: Keymap, *, may_ring: bool) -> None:
        """may_ring: use the bell and the desktop notice."""
        self._app, self._view = app, view
        self._key, self._roll_back_key = keymap.of_id("warnings").shown, keymap.of_id("roll-back").shown
        self._may_call = may_ring
        self._waiting: list[Alert] = []
        self._loud: list[Alert] = []
        self._failed: dict[str, tuple[BehaviorStateChanged, float]] = {}  # that wait for a last checkpoint, since
        self._covered: frozenset[Region] = frozenset()
        self._room, self._until = MOST_TOASTS, 0.0

    def add(self, event: Event) -> None:
        """Add the alert for an event that was folded into the view, if it has one.

        A failed behavior saves a last checkpoint: its toast waits for that, and names the newest one.
        """
        match event:
            case BehaviorStateChanged(state="failed"):
                self._failed[event.behavior] = event, time.monotonic()
                return
            case CheckpointSaved(reason="error") | CheckpointFailed(reason="error"):
                self._release([event.behavior])
            case RunStateChanged(state=state) if state in ENDS:
                self._release(list(self._failed))
        self._note(alert_for(event, self._view, self._roll_back_key))

    def _release(self, behaviors: Sequence[str]) -> None:
        """The last checkpoints of these are known now."""
        for name in behaviors:
            if name in self._failed:
                self._note(alert_for(self._failed.pop(name)[0], self._view, self._roll_back_key))

    def _note(self, alert: Alert | None) -> None:
        if alert is not None:
            self._waiting.append(alert)
        if alert is not None and alert.is_loud and self._may_call:
            self._loud.append(alert)

    def _time_out(self, now: float) -> None:
        for name, (event, since) in list(self._failed.items()):
            if now - since > SAVING_SECONDS:
                del self._failed[name]
                kept = f"{_kept(self._view, name)}, and a newer one is being saved"
                self._note(failure_alert(event, self._view, kept, self._roll_back_key))

    def show(self, now: float) -> None:
        """Ring for loud alerts, and show toasts, the worst first, but not over a dialog and not too many at once."""
        self._uncover()
        self._time_out(now)
        place_toasts(self._app.screen)
        if self._loud:
            ring(self._app, self._loud[0])
            self._loud.clear()
        place = toast_place(self._app.screen)
        num_lines, most = shares(place.height, gap=self._app.screen.has_class("-tall"))
        if now >= self._until:
            self._room = most
        if not self._waiting or not self._room or isinstance(self._app.screen, ModalScreen):
            return
        self._waiting.sort(key=lambda alert: ("error", "warning", "information").index(alert.severity))
        shown, num_more = self._waiting[: self._room], len(self._waiting) - self._room
        for alert in shown:
            self._toast(alert, place.width, num_lines)
        if num_more > 0:
            self._toast(Alert("", f"and {num_more} more: {self._key} shows them", "warning"), place.width, 1)
        self._room, self._until = self._room - len(shown), now + TOAST_SECONDS
        self._waiting.clear()

    def _uncover(self) -> None:
        """Paint what stood below a toast that is gone: Textual 8.2.8 misses it if a hidden widget has changed."""
        covered = toast_regions(self._app.screen)
        if self._covered - covered:
            self._app.screen.refresh(*(self._covered - covered))
        self._covered = covered

    def _toast(self, alert: Alert, width: int, num_lines: int) -> None:
        text = " ".join(wrap(safe_text(alert.text), max(1, width - TOAST_EDGES), num_lines))
        self._app.notify(
            text, title=safe_text(alert.title), severity=alert.severity, timeout=TOAST_SECONDS, markup=False
        )


def shares(rows: int, gap: int) -> tuple[int, int]:
    """Into so many rows: the lines of text for each toast, and how many toasts. gap: rows between them.

    Each has a title, and one line counts those that have no room.
    """
    num_lines = max(1, min(TOAST_LINES, rows // 3))
    return num_lines, max(1, min(MOST_TOASTS, (rows - 1 - gap) // (num_lines + 1 + gap)))


def alert_for(event: Event, view: RunView, roll_back_key: str = "R") -> Alert | None:
    """The alert for an event that `view` has folded in; None for nearly all events.

    roll_back_key: the key that rolls back what diverged.
    """
    match event:
        case WarningRaised():
            return Alert(event.behavior or "run", f"{event.message}; {event.advice}", "warning")
        case BehaviorStateChanged(behavior=name, state="failed"):
            return failure_alert(event, view, _kept(view, name), roll_back_key)
        case CheckpointFailed():
            text = f"step {count(event.step)} is not saved: {event.message}; earlier checkpoints are untouched"
            return Alert(event.behavior, text, "error")
        case LogEmitted(level="error"):
            return Alert(event.source or "run", event.message, "error")
        case RunStateChanged(state=state) if state in ENDS:
            return _end_alert(event, view)
        case _:
            return _restart_alert(event, view) if isinstance(event, EnvironmentRestarting) else None


def _restart_alert(event: EnvironmentRestarting, view: RunView) -> Alert | None:
    """Not once it is known that this happens again and again."""
    if any((FREQUENT_RESTARTS, name) in view.warnings for name in event.behaviors):
        return None
    who = f"{worker_word(event.environment)} {event.worker} of {event.environment} is restarting"
    return Alert(who, f"{bare_reason(event)}; the others go on", "warning")


def _end_alert(event: RunStateChanged, view: RunView) -> Alert:
    if event.state in BAD_ENDS:
        return Alert(f"Run {event.state}", event.reason, "error", is_loud=True)
    return Alert(f"Run {event.state}", f"{_best(view)}{event.reason}", "information", is_loud=True)


def failure_alert(event: BehaviorStateChanged, view: RunView, kept: str, key: str) -> Alert:
    """How to roll back, if that is possible; why the behavior failed, and its last checkpoint."""
    good = good_checkpoint(view.behavior(event.behavior))
    back = "" if good is None else f"; {key} rolls it back to step {count(good[1].step)}"
    return Alert(f"{event.behavior} failed{back}", f"{event.reason}; {kept}", "error", is_loud=True)


def _kept(view: RunView, name: str) -> str:
    saved = view.behavior(name).checkpoints
    return f"its last checkpoint is of step {count(saved[-1][1].step)}" if saved else "it has no checkpoint"


def _best(view: RunView) -> str:
    best = [f"{b.name} {number(b.best_return)}" for b in view.behaviors.values() if b.best_return is not None]
    return f"best checkpoint: {', '.join(best)}. " if best else ""


def ring(app: App[Any], alert: Alert) -> None:
    """Ring the bell, and let the terminal show a notice where it can."""
    app.bell()
    write(app, notice_sequence(f"{alert.title}: {alert.text}", os.environ))


def toast_place(screen: Screen[Any]) -> Region:
    """The cells that toasts may cover; they are at its bottom."""
    columns, rows = screen.size
    width = min(WIDEST, columns * 6 // 10)
    where = {widget: region.shrink(widget.styles.gutter) for widget, (region, _) in spots(screen).items()}
    charts = [region for widget, region in where.items() if isinstance(widget, ChartPane) and region.height >= LOWEST]
    if charts:
        chart = max(charts, key=lambda region: region.area)
        return Region(chart.x, chart.y, min(width, chart.width), chart.height)
    right = columns - width - 1
    pane = screen.focused
    if isinstance(pane, ListPane) and pane in where:
        top, bottom = free_rows(pane, where[pane])
        if bottom - top >= LOWEST:
            return Region(right, top, width, bottom - top)
    return Region(right, rows // 2, width, max(1, rows - 2 - rows // 2))


def free_rows(pane: ListPane, content: Region) -> tuple[int, int]:
    """First row, and one past the last, of the larger part of a list that is neither newest nor selected."""
    first = content.y + (0 if pane.follows_end else NEWEST)
    end, cursor = content.bottom - (NEWEST if pane.follows_end else 0), pane.cursor_rows()
    if not cursor:
        return first, end
    above = first, min(end, content.y + cursor.start)
    below = max(first, content.y + cursor.stop), end
    return max(below, above, key=lambda part: part[1] - part[0])


def place_toasts(screen: Screen[Any]) -> None:
    """Toasts, those on the screen too, are in that place."""
    rack = next(iter(screen.query(ToastRack)), None)
    if rack is None:
        return
    place = toast_place(screen)
    rack.styles.width, rack.styles.max_height = place.width, place.height
    rack.styles.margin = (0, 0, screen.size.height - place.bottom, place.x)
