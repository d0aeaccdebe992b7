"""The view of a run that goes on, as its readers have it."""

from __future__ import annotations

import threading
import time

import pytest

from rl_tui.engine.session import live_view
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.live_view import LiveView
from rl_tui.engine.session.messages import CommandFinished, EpisodesFinished, RunStateChanged
from rl_tui.engine.session.view import RunView
from tests.deadline import DEADLINE_SECONDS

DONE = CommandFinished("c", True, "saved")


def live() -> tuple[EventBus, LiveView]:
    bus = EventBus()
    return bus, LiveView(bus.subscribe())


def test_events_are_in_the_view_once_it_is_read() -> None:
    bus, run = live()
    bus.publish(RunStateChanged("training"))
    assert run.view.state == "starting"
    assert [envelope.event for envelope in run.fold()] == [RunStateChanged("training")]
    assert run.view.state == "training"
    assert run.fold() == []


def test_snapshot_does_not_change_with_the_run() -> None:
    bus, run = live()
    bus.publish(EpisodesFinished("B", 10, 1, 1.0, 1.0, 1.0, 5.0))
    before = run.snapshot()
    bus.publish(EpisodesFinished("B", 20, 1, 3.0, 3.0, 3.0, 5.0))
    assert run.snapshot().behaviors["B"].num_episodes == 2
    assert (before.behaviors["B"].num_episodes, before.position) == (1, (0, 1))


@pytest.mark.parametrize("drops_mail", [True, False])
def test_another_view_takes_the_place_of_the_first(drops_mail: bool) -> None:
    bus, run = live()
    bus.publish(RunStateChanged("paused"))
    another = RunView(state="training")
    run.show(another, drops_mail=drops_mail)
    assert len(run.fold()) == (0 if drops_mail else 1)
    assert run.view is another
    assert another.state == ("training" if drops_mail else "paused")


def test_outcome_is_known_as_soon_as_it_is_published(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_view, "FOLD_SECONDS", 1000.0)
    bus, run = live()
    over = threading.Event()
    follower = threading.Thread(target=run.main, args=(over.wait,))
    follower.start()
    publisher = threading.Timer(0.1, bus.publish, [DONE])
    publisher.start()
    assert run.await_outcome("c", DEADLINE_SECONDS) == DONE
    assert run.outcome("c") == DONE
    over.set()
    bus.publish(RunStateChanged("finished"))
    follower.join(DEADLINE_SECONDS)
    assert not follower.is_alive()
    assert run.view.state == "finished"


def test_outcome_that_never_comes_is_waited_for_no_longer_than_asked() -> None:
    _, run = live()
    start = time.monotonic()
    assert run.await_outcome("c", 0.05) is None
    assert time.monotonic() - start >= 0.05
    assert run.outcome("c") is None
