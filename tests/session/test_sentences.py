"""An event says the same in the log, on a console and in an alert."""

from __future__ import annotations

import io

import pytest

from rl_tui.engine.running.writers.console import ConsoleWriter
from rl_tui.engine.session.messages import (
    CheckpointFailed,
    Envelope,
    EnvironmentRestarting,
    Event,
    LogEmitted,
    ProgressReported,
    WarningRaised,
)
from rl_tui.engine.session.sentences import sentence_of
from rl_tui.engine.session.view import RunView
from rl_tui.tui.screens.alerts import alert_for


@pytest.mark.parametrize(
    ("event", "source", "text"),
    [
        (CheckpointFailed("B", 5, "asked", "disk full"), "B", "step 5 not saved (asked): disk full"),
        (WarningRaised("entropy", "B", "entropy 0.01", "raise beta"), "B", "entropy 0.01; raise beta"),
        (WarningRaised("disk", "", "nearly full", ""), "", "nearly full"),
        (LogEmitted("error", "writer x", "no"), "writer x", "no"),
        (EnvironmentRestarting("gym:X", 1, ("A", "B"), "died", "", 3), "A, B", "worker 1, restart 3: died"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_log_console_and_alert_say_the_same(event: Event, source: str, text: str) -> None:
    view, stream = RunView(), io.StringIO()
    view.apply(Envelope(1, 5.0, event))
    ConsoleWriter(stream).write(Envelope(1, 5.0, event))
    alert = alert_for(event, view)
    assert (view.log[-1].source, view.log[-1].message) == (source, text)
    assert alert is not None
    assert (alert.title, alert.text) == (source or "run", text)
    assert stream.getvalue().endswith(f"{text}\n")


def test_what_only_moves_a_screen_says_nothing() -> None:
    assert sentence_of(ProgressReported("B", 1, 1, 1.0, 1)) is None
