"""How often a watched play is drawn: what its pictures take decides, and whether something trains."""

from __future__ import annotations

import pytest

from rl_tui.engine.running.watching import clock as play_clock
from rl_tui.engine.running.watching.clock import FREE_RENDER_SHARE, RENDER_SHARE, PlayClock


class Time:
    """Stands for the module `time`: no thread computes anything, and the clock is set by hand."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def thread_time(self) -> float:
        return 0.0

    process_time = thread_time


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> tuple[PlayClock, Time]:
    """A clock, and the time that it reads."""
    time = Time()
    monkeypatch.setattr(play_clock, "time", time)
    return PlayClock(), time


@pytest.mark.parametrize(("spares", "share"), [(True, RENDER_SHARE), (False, FREE_RENDER_SHARE)])
def test_a_picture_that_takes_long_is_followed_by_a_rest(
    clock: tuple[PlayClock, Time], spares: bool, share: float
) -> None:
    play, time = clock
    play.stepped(is_training=spares)
    play.rendered(0.03)
    play.drew()
    time.now = 0.03 / share - 0.001
    assert not play.may_draw
    time.now = 0.03 / share + 0.001
    assert play.may_draw


def test_one_slow_picture_counts_at_once_and_is_forgotten_in_time(clock: tuple[PlayClock, Time]) -> None:
    play, time = clock
    play.stepped(is_training=True)
    for seconds in (0.01, 1.0, *[0.01] * 100):
        play.rendered(seconds)
        if seconds == 1.0:
            play.drew()
            time.now += 1.0 / RENDER_SHARE - 0.1
            assert not play.may_draw
    time.now += 0.2
    assert play.may_draw
