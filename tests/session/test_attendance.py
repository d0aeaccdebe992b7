"""Of the screens that show a run, one controls it."""

from __future__ import annotations

import pytest

from rl_tui.engine.session.attendance import Attendance
from rl_tui.engine.session.bus import EventBus, Subscription
from rl_tui.engine.session.messages import Attend, ControllerChanged, TakeControl


class Attended:
    """An attendance, and who was said to control the run."""

    def __init__(self) -> None:
        self.bus = EventBus()
        self.bus.epoch = 1
        self.mail: Subscription = self.bus.subscribe()
        self.attendance = Attendance(self.bus)

    def take(self, *hints: Attend | TakeControl) -> list[str]:
        """The controllers that these have led to."""
        for hint in hints:
            self.attendance.take(hint)
        events = [envelope.event for envelope in self.mail.drain()]
        return [event.screen for event in events if isinstance(event, ControllerChanged)]


@pytest.fixture
def attended() -> Attended:
    return Attended()


def test_first_screen_controls_until_another_takes_over(attended: Attended) -> None:
    assert attended.take(Attend(True, "a"), Attend(True, "b"), Attend(True, "a")) == ["a"]
    assert attended.take(TakeControl("b"), TakeControl("b")) == ["b"]
    assert attended.take(TakeControl("a")) == ["a"]


def test_next_screen_controls_once_the_one_that_did_has_left(attended: Attended) -> None:
    assert attended.take(*(Attend(True, name) for name in "abc"), TakeControl("c")) == ["a", "c"]
    assert attended.take(Attend(False, "b")) == []
    assert attended.take(Attend(False, "c")) == ["a"]
    assert attended.take(Attend(False, "a"), Attend(False, "a")) == [""]


def test_screen_that_does_not_attend_cannot_control(attended: Attended) -> None:
    assert attended.take(TakeControl("a")) == []
    assert attended.take(Attend(True, "b"), TakeControl("a")) == ["b"]


def test_screen_is_announced_once_the_run_has_a_log(attended: Attended) -> None:
    attended.bus.epoch = 0
    assert attended.take(Attend(True, "a")) == []
    attended.bus.epoch = 1
    assert attended.take(Attend(True, "a")) == ["a"]


def test_run_knows_whether_any_screen_shows_it(attended: Attended) -> None:
    hints = Attend(True, "a"), Attend(True, "b"), Attend(False, "a"), TakeControl("a"), Attend(False, "b")
    assert [attended.attendance.take(hint) for hint in hints] == [True, True, True, True, False]
