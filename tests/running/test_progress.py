"""Speeds are those of a minute."""

from __future__ import annotations

import pytest

from rl_tui.engine.running.speed import SPEED_SECONDS, Speed


def test_a_speed_is_that_of_the_last_minute() -> None:
    speed = Speed(10.0)
    assert speed.measure(10.5, 50) == pytest.approx(100)
    measured = [speed.measure(10 + quarter / 4, 100 * quarter // 4) for quarter in range(3, 4 * 120)]
    assert measured == pytest.approx([100.0] * len(measured), rel=0.02)
    assert len(speed._marks) <= 4 * SPEED_SECONDS + 2


def test_an_update_that_takes_long_hardly_changes_it_and_a_slower_world_does_within_a_minute() -> None:
    speed, seconds, sampled = Speed(0.0), 0.0, 0
    speeds = []
    for second in range(240):
        seconds += 3 if second % 10 == 9 else 1  # a rollout of nine seconds, then an update
        sampled += 0 if second % 10 == 9 else 100 if second < 120 else 10
        speeds.append(speed.measure(seconds, sampled))
    settled = speeds[60:120]
    assert max(settled) < 1.2 * min(settled), settled
    assert speeds[-1] == pytest.approx(settled[-1] / 10, rel=0.2)


def test_a_speed_without_steps_is_zero() -> None:
    assert Speed(5.0).measure(5.0, 0) == 0.0
