"""What several ranks report: means of the last minute, and which rank the others wait for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rl_tui.engine.session.messages import DevicesSampled, RanksReported, RankStatus
from rl_tui.engine.session.ranks_view import RanksView

DEVICES = DevicesSampled((), "no NVIDIA driver", 5.0, 2, 1, 2, 3, 4, 5)


def status(rank: int, waiting: float = 0.0, host: str = "a", speed: float = 100.0) -> RankStatus:
    return RankStatus(rank, host, "cpu", speed, waiting, DEVICES if host != "a" else None)


def after(*reports: tuple[RankStatus, ...], every: float = 2.0) -> RanksView:
    view = RanksView()
    for number, report in enumerate(reports):
        view.apply(RanksReported(report), 1000.0 + every * number)
    return view


def waits(*shares: float) -> tuple[RankStatus, ...]:
    return tuple(status(rank, share) for rank, share in enumerate(shares))


def test_figures_are_means_of_the_last_minute() -> None:
    view = after(*[waits(1.0, 1.0)] * 30, *[waits(0.0, 0.5)] * 15)
    assert [each.waiting for each in view.statuses] == pytest.approx([0.5, 0.75])
    assert view.waiting == pytest.approx(0.625)
    assert view.steps_per_second == pytest.approx(200.0)
    assert view.seconds == 58.0
    assert [each.waiting for each in after(waits(1.0, 0.0), waits(0.0, 0.0), every=60.0).statuses] == [0.0, 0.0]


def test_a_pause_does_not_count() -> None:
    paused = tuple(status(rank, speed=0.0) for rank in range(2))
    view = after(*[waits(0.0, 0.5)] * 5, *[paused] * 10)
    assert [each.waiting for each in view.statuses] == [0.0, 0.5]
    assert [each.steps_per_second for each in after(paused).statuses] == [0.0, 0.0]


def test_report_of_other_ranks_is_not_mixed_with_earlier_ones() -> None:
    view = after(*[waits(1.0, 1.0)] * 5, waits(0.5, 0.5, 0.5))
    assert [each.waiting for each in view.statuses] == [0.5, 0.5, 0.5]


def test_the_rank_that_waits_least_is_slow_if_the_others_wait_for_long() -> None:
    view = after(*[waits(0.5, 0.1, 0.3)] * 5)
    assert view.slow is not None
    assert view.slow.status.rank == 1
    assert (view.slow.waiting, view.slow.excess) == pytest.approx((0.4, 0.3))
    assert view.slow.words("gpu07") == "rank 1 on gpu07 is slow: the others wait 40% of the time"
    two = after(*[waits(0.5, 0.1)] * 5).slow
    assert two is not None
    assert two.words("") == "rank 1 is slow: the other waits 50% of the time"


def test_ranks_that_wait_alike_or_have_only_begun_are_not_slow() -> None:
    even = after(*[waits(0.7, 0.6)] * 5)
    assert even.slow is None
    assert even.slowest is not None
    assert even.slowest.status.rank == 1
    assert after(*[waits(0.9, 0.0)] * 4).slowest is None
    assert after(*[waits(0.0)] * 9).slowest is None
    assert RanksView().slowest is None


def test_ranks_that_take_turns_are_not_slow() -> None:
    assert after(*[waits(0.9, 0.0), waits(0.0, 0.9)] * 5).slow is None


def test_machines_have_the_devices_that_their_first_rank_reports() -> None:
    there = (status(0), status(1), status(2, host="b"), replace(status(3, host="b"), devices=None))
    view = after(there)
    assert view.has_hosts
    assert [(each.host, each.ranks) for each in view.machines(DEVICES)] == [("a", (0, 1)), ("b", (2, 3))]
    assert view.other_machines == view.machines(DEVICES)[1:]
    assert [each.host for each in RanksView().machines(DEVICES)] == [""]
    assert not after(waits(0.0, 0.0)).has_hosts
