"""Warnings about a live run: published among its events, from a bounded mailbox."""

from __future__ import annotations

from pathlib import Path

from rl_tui.engine.running.run import HEALTH_MAILBOX, HealthReporter
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import CheckpointFailed, CheckpointSaved, LogEmitted, WarningCleared, WarningRaised
from tests.running.runs import behavior, configuration, run_to_end

FAILED = CheckpointFailed("Walker", 500, "interval", "No space left on device")
SAVED = CheckpointSaved("Walker", 600, "x", "interval", None, False, 1, 0.1)


def test_a_warning_follows_what_caused_it() -> None:
    bus = EventBus()
    reporter, mail = HealthReporter(bus), bus.subscribe()
    bus.publish(FAILED)
    assert [envelope.event for envelope in mail.drain()] == [FAILED], "not before a tick"
    reporter.tick()
    (warning,) = [envelope.event for envelope in mail.drain()]
    assert isinstance(warning, WarningRaised)
    assert (warning.kind, warning.behavior) == ("checkpoint_failed", "Walker")
    bus.publish(SAVED)
    reporter.tick()
    assert [envelope.event for envelope in mail.drain()] == [SAVED, WarningCleared("checkpoint_failed", "Walker")]
    reporter.close()
    bus.publish(FAILED)
    reporter.tick()
    assert [envelope.event for envelope in mail.drain()] == [FAILED], "it has left"


def test_events_that_are_never_read_do_not_pile_up() -> None:
    bus = EventBus()
    reporter, mail = HealthReporter(bus), bus.subscribe(3 * HEALTH_MAILBOX)
    bus.publish(FAILED)
    for number in range(HEALTH_MAILBOX):
        bus.publish(LogEmitted("info", "", str(number)))
    reporter.tick()
    assert not isinstance(mail.drain()[-1].event, WarningRaised), "the oldest is lost"
    bus.publish(FAILED)
    reporter.tick()
    assert isinstance(mail.drain()[-1].event, WarningRaised)


def test_a_short_run_that_goes_well_warns_of_nothing(tmp_path: Path) -> None:
    run = run_to_end(configuration(tmp_path, {"Line": behavior(max_steps=4096)}))
    assert run.of(WarningRaised) == []
