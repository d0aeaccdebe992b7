"""Alerts: in the line above the keys, which covers nothing, and by the bell and desktop notice of the terminal."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from textual.app import App
from textual.screen import ModalScreen, Screen

from rl_tui.engine.session.live_view import LiveView
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
from rl_tui.engine.session.sentences import sentence_of
from rl_tui.engine.session.states import BAD_ENDS, ENDS
from rl_tui.engine.session.view import RunView
from rl_tui.tui.drawing.text import count, number
from rl_tui.tui.keys.keymap import Keymap
from rl_tui.tui.panes import outcome
from rl_tui.tui.panes.checkpoint_list import good_checkpoint
from rl_tui.tui.state.alert import Alert, ShownAlert
from rl_tui.tui.state.command_status import CommandStatus
from rl_tui.tui.terminal.sequences import notice_sequence
from rl_tui.tui.textual_private import write

SAVING_SECONDS = 5.0  # after which a failure is shown even if its last checkpoint is still being written
MOST_WAITING = 2  # are shown after the first; the others are only counted, since they would be old news
FREQUENT_RESTARTS = "frequent_restarts"  # the kind of a warning


class Alerts:
    """Runs in the app's thread. Owns the alerts that were not shown yet."""

    def __init__(self, app: App[Any], live: LiveView, status: CommandStatus, keymap: Keymap, *, may_ring: bool) -> None:
        """status: has the one that is shown. may_ring: use the bell and the desktop notice."""
        self._app, self._live, self._status = app, live, status
        self._roll_back_key = keymap.of_id("roll-back").shown
        self._may_call = may_ring
        self._waiting: list[Alert] = []
        self._loud: list[Alert] = []
        self._failed: dict[str, tuple[BehaviorStateChanged, float]] = {}  # that wait for a last checkpoint, since

    def add(self, event: Event) -> None:
        """Add the alert for an event that was folded into the view, if it has one.

        A failed behavior saves a last checkpoint: its alert waits for that, and names the newest one.
        """
        match event:
            case BehaviorStateChanged(state="failed"):
                self._failed[event.behavior] = event, time.monotonic()
                return
            case CheckpointSaved(reason="error") | CheckpointFailed(reason="error"):
                self._release([event.behavior])
            case RunStateChanged(state=state) if state in ENDS:
                self._release(list(self._failed))
        self._note(alert_for(event, self._live.view, self._roll_back_key))

    def _release(self, behaviors: Sequence[str]) -> None:
        """The last checkpoints of these are known now."""
        for name in behaviors:
            if name in self._failed:
                self._note(alert_for(self._failed.pop(name)[0], self._live.view, self._roll_back_key))

    def _note(self, alert: Alert | None) -> None:
        if alert is not None:
            self._waiting.append(alert)
        if alert is not None and alert.is_loud and self._may_call:
            self._loud.append(alert)

    def _time_out(self, now: float) -> None:
        for name, (event, since) in list(self._failed.items()):
            if now - since > SAVING_SECONDS:
                del self._failed[name]
                kept = f"{_kept(self._live.view, name)}, and a newer one is being saved"
                self._note(failure_alert(event, self._live.view, kept, self._roll_back_key))

    def show(self, now: float) -> None:
        """Ring for loud alerts, and show the worst that waits, unless another has its time, a key was just answered, or
        the line is hidden.

        now: on the monotonic clock.
        """
        self._time_out(now)
        if self._loud:
            ring(self._app, self._loud[0])
            self._loud.clear()
        shown = self._status.alert
        is_due = shown is None or now - shown.at >= outcome.NOTICE_SECONDS
        self._waiting.sort(key=lambda alert: alert.rank)
        if not self._waiting or not has_line(self._app.screen) or outcome.is_answered(self._status, now):
            return
        if shown is None or is_due or self._waiting[0].rank < shown.alert.rank:
            alert, *others = self._waiting
            self._status.alert = ShownAlert(alert, len(others), now)
            self._waiting = others[:MOST_WAITING]


def has_line(screen: Screen[Any]) -> bool:
    """Whether the line for alerts is in sight: no dialog covers it, and no filter is typed there."""
    lines = () if isinstance(screen, ModalScreen) else screen.query(outcome.OutcomeLine)
    return any(each.display and each.size.height > 0 for each in lines)


def alert_for(event: Event, view: RunView, roll_back_key: str = "R") -> Alert | None:
    """The alert for an event that `view` has folded in; None for nearly all events.

    roll_back_key: the key that rolls back what diverged.
    """
    match event:
        case BehaviorStateChanged(behavior=name, state="failed"):
            return failure_alert(event, view, _kept(view, name), roll_back_key)
        case RunStateChanged(state=state) if state in ENDS:
            return _end_alert(event, view)
        case EnvironmentRestarting() if any((FREQUENT_RESTARTS, name) in view.warnings for name in event.behaviors):
            return None  # that it happens again and again is known
        case WarningRaised() | CheckpointFailed() | LogEmitted(level="error") | EnvironmentRestarting():
            return _plain_alert(event)
        case _:
            return None


def _plain_alert(event: Event) -> Alert | None:
    """What the log says of it."""
    said = sentence_of(event)
    return said and Alert(said.source or "run", said.text, "error" if said.level == "error" else "warning")


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
