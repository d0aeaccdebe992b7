"""Drawing takes a small share of the time, whatever a drawing costs, and what a user waits for does not wait for it."""

from __future__ import annotations

import threading

import pytest

from rl_tui.engine.session.messages import (
    BehaviorStateChanged,
    CommandFinished,
    LogEmitted,
    ProgressReported,
    YieldToScreen,
)
from rl_tui.tui.app import ANSWER_SECONDS, TrainerApp
from rl_tui.tui.drawing.pacing import LONGEST_SECONDS, SHARE, SLOW_SECONDS, Pace
from tests.fakes import FakeSession
from tests.tui import scenes
from tests.tui.settling import until_shown
from tests.tui.snapshots import screen_text, settled_text


@pytest.mark.parametrize(
    ("cost", "interval"), [(0.001, 0.25), (0.4 * SHARE, 0.4), (0.8 * SHARE, 0.8), (0.3, LONGEST_SECONDS)]
)
def test_interval_follows_the_cost_of_a_drawing(cost: float, interval: float) -> None:
    pace = Pace(0.25)
    for drawing in range(40):
        pace.drew(float(drawing), drawing * cost)
    assert pace.interval(39) == pytest.approx(interval, rel=0.01)
    assert not pace.is_due(39 + interval - 0.1)
    assert pace.is_due(39 + interval)


def test_one_slow_drawing_changes_little() -> None:
    pace = Pace(0.25)
    pace.drew(0.0, 0.0)
    pace.drew(1.0, 3.0)
    assert pace.interval(1.0) < 0.5


def test_first_drawing_is_due_at_once() -> None:
    assert Pace(0.5).is_due(0.0)


def test_a_line_that_is_often_behind_is_slow_until_it_keeps_up() -> None:
    pace = Pace(0.25)
    pace.drew(99.0, 0.0)
    for beat in range(4):
        pace.skipped(100 + beat / 4)
        pace.skipped(100.1 + beat / 4)  # the same picture
        assert pace.interval(100.2 + beat / 4) == 0.25
        assert pace.notes(100.2 + beat / 4) == ()
    pace.skipped(101.0)
    assert pace.interval(101.1) == 1.0
    assert pace.notes(101.1) == ("link slow",)
    pace.drew(105.0, 0.0)
    assert not pace.is_due(105.7)
    assert pace.is_due(106.0)
    assert pace.is_slow(105.0)
    assert pace.interval(101.0 + SLOW_SECONDS) == 0.25
    assert pace.notes(101.0 + SLOW_SECONDS) == ()


def test_being_behind_at_times_is_not_slow() -> None:
    pace = Pace(0.25)
    for second in range(60):
        pace.skipped(second + 0.5)
        assert not pace.is_slow(second + 0.6)
        pace.drew(second + 0.75, 0.0)


def test_a_line_that_was_measured_is_left_half_free() -> None:
    pace = Pace(0.25)
    pace.measured(False, 3.0)
    assert pace.interval(0.0) == 0.25
    for seconds, interval in ((0.1, 1.0), (0.9, 1.8), (30.0, 4.0)):
        pace.measured(True, seconds)
        assert pace.interval(0.0) == interval
        assert pace.notes(0.0) == ("link slow",)


@pytest.mark.parametrize(("connection", "seconds"), [(None, 0.25), ("10.0.0.1 1 10.0.0.2 22", 0.5)])
async def test_over_ssh_it_is_drawn_half_as_often(
    connection: str | None, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    if connection is not None:
        monkeypatch.setenv("SSH_CONNECTION", connection)
    app = TrainerApp(FakeSession(scenes.healthy(1).view()))
    assert app._pace.interval(0.0) == seconds


async def test_news_is_drawn_before_its_time_and_figures_are_not() -> None:
    view = scenes.healthy(1).view()
    session = FakeSession(view, answers=False)
    app = TrainerApp(session, clock=lambda: view.now)
    async with app.run_test(size=(120, 40)) as pilot:
        app.tick()
        await settled_text(pilot)
        app._pace.is_due = lambda now: False  # type: ignore[method-assign]  # as if it had just been drawn
        session.bus.publish(ProgressReported("Walker", 333_000, 333_000, 1.0, 1))
        app._beat()
        assert "333k" not in await settled_text(pilot)
        await pilot.press("c")
        session.bus.publish(CommandFinished(session.commands[0].id, True, "results/a"))
        app._beat()
        assert "✓ checkpoint Walker: done" in await settled_text(pilot)
        session.bus.publish(BehaviorStateChanged("Walker", "paused"))
        app._beat()
        assert "‖ paused" in await settled_text(pilot)


async def test_outcome_of_another_thread_is_drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rl_tui.tui.app.LOCAL_SECONDS", 1000.0)
    view = scenes.healthy(1).view()
    session = FakeSession(view, answers=False)
    app = TrainerApp(session, clock=lambda: view.now)

    async def shown() -> str:
        await pilot.pause()
        return screen_text(app)

    async with app.run_test(size=(120, 40)) as pilot:
        app.tick()
        await settled_text(pilot)
        await pilot.press("c")
        command = session.commands[0]
        threading.Thread(target=session.desk.finish, args=(command.id, True, "results/a")).start()
        await until_shown(shown, "✓ checkpoint Walker: done")


async def test_training_waits_while_a_key_is_answered() -> None:
    session = FakeSession(scenes.healthy(1).view())
    app = TrainerApp(session)
    async with app.run_test() as pilot:
        assert session.hints == []
        await pilot.press("s")
        assert set(session.hints) == {YieldToScreen(ANSWER_SECONDS)}
        assert session.commands == []


async def test_slow_panes_stand_still_until_what_they_show_changes() -> None:
    story = scenes.healthy(1)
    view = story.view()
    session = FakeSession(view)
    app = TrainerApp(session, clock=lambda: view.now)
    async with app.run_test(size=(150, 40)) as pilot:
        app.tick()
        await settled_text(pilot)
        session.bus.publish(ProgressReported("Walker", 161_000, 161_000, 1.0, 1))
        session.bus.publish(LogEmitted("warning", "Walker", "something new"))
        app.fold()
        view.now = story.time  # those events were reported at the real time
        app.redraw()
        text = await settled_text(pilot)
        assert "something new" in text
        assert "step 160k of 500k" in text  # the chart's own line; the table has the new figure
        assert "161k" in text
        view.now += 1
        app.redraw()
        assert "step 161k of 500k" in await settled_text(pilot)
