"""Curves that keep every spike in little memory."""

import math
import sys
import time

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rl_tui.engine.session import history as history_module
from rl_tui.engine.session.history import HISTORY_POINTS, MOST_COUNTED, History

VALUES = st.floats(allow_nan=True, allow_infinity=True)
MANY = [math.nan if at % 5 == 0 else (-1.5) ** (at % 23) for at in range(300)]  # several to a bucket


@pytest.fixture(autouse=True, scope="module")
def small():
    """Sixteen buckets, so that a few values fill them many times over."""
    patch = pytest.MonkeyPatch()
    patch.setattr(history_module, "HISTORY_POINTS", 16)
    yield
    patch.undo()


def curve(values, first=0) -> History:
    """One value a step and half a second."""
    history = History()
    for step, value in enumerate(values, start=first):
        history.append(step, 1000 + step / 2, value)
    return history


def finite(values) -> list[float]:
    return [value for value in values if math.isfinite(value)]


def buckets(history: History, values: list[float]) -> list[list[float]]:
    """The values of each bucket, by where it ends."""
    ends = [int(step) for step in history.steps]
    return [values[begin:end] for begin, end in zip([0, *(e + 1 for e in ends)], [e + 1 for e in ends], strict=False)]


@given(st.lists(VALUES, max_size=400))
@example(MANY)
def test_no_spike_is_lost_and_nothing_is_made_up(values):
    history = curve(values)
    for at, inside in enumerate(buckets(history, values)):
        known = finite(inside)
        assert history.broken[at] == len(inside) - len(known)
        if not known:
            assert math.isnan(history.low[at])
            assert math.isnan(history.high[at])
            assert math.isnan(history.mean[at])
            continue
        assert (history.low[at], history.high[at]) == (min(known), max(known))
        assert history.mean[at] == pytest.approx(
            np.mean(np.longdouble(known)), rel=1e-6, abs=max(1e-6 * max(map(abs, known)), 1e-300)
        )


@given(st.lists(VALUES, max_size=400))
@example(MANY)
def test_buckets_are_few_full_and_in_order(values):
    history = curve(values)
    assert len(history) <= 16
    columns = (history.steps, history.times, history.low, history.high, history.mean, history.broken)
    assert {len(column) for column in columns} == {len(history)}
    full = len(history) - (history.filling > 0)
    assert full * history.stride + history.filling == len(values), "the left is never cut off"
    assert list(history.steps) == sorted(set(history.steps))
    assert [1000 + step / 2 for step in history.steps] == list(history.times)
    if values:
        assert history.steps[-1] == len(values) - 1, "the newest value is there"
        assert len(history) > 16 // 2 or history.stride == 1, "no coarser than needed"


@given(st.lists(VALUES, min_size=1, max_size=300), st.integers(-5, 320), st.lists(VALUES, max_size=60))
@example(MANY, 100, MANY[:60])
def test_rewinding_forgets_what_lies_beyond_and_goes_on(values, step, more):
    history = curve(values)
    before = list(history.steps)
    history.rewind(step)
    assert list(history.steps) == [end for end in before if end <= step]
    for number, value in enumerate(more, start=1):
        history.append(step + number, 2000 + number, value)
    assert list(history.steps) == sorted(set(history.steps))
    assert len(history) <= 16
    known, kept = finite(more), finite([*history.low, *history.high])
    if known:
        assert min(kept) <= min(known)
        assert max(kept) >= max(known)


def test_a_curve_rewound_to_its_beginning_is_fine_again():
    history = curve(range(1000))
    assert history.stride > 1
    history.rewind(-1)
    assert (len(history), history.stride, history.filling) == (0, 1, 0)


def test_a_step_that_goes_back_gives_up_what_lay_beyond():
    history = curve([1.0, 2.0, 3.0])
    history.append(1, 1010.0, 9.0)
    assert (list(history.steps), list(history.mean)) == ([0.0, 1.0, 1.0], [1.0, 2.0, 9.0])
    history.append(-1, 1011.0, 5.0)
    assert (list(history.steps), list(history.mean)) == ([-1.0], [5.0])


def test_a_clock_that_is_set_back_stands_still():
    history = History()
    for step, now in enumerate((10.0, 5.0, 20.0)):
        history.append(step, now, 1.0)
    assert list(history.times) == [10.0, 10.0, 20.0]


def test_the_largest_numbers_do_not_overflow():
    history = curve([sys.float_info.max] * 100)
    assert list(history.mean) == pytest.approx([sys.float_info.max] * len(history))
    assert set(history.broken) == {0}


def test_many_points_stay_within_their_bound(monkeypatch):
    monkeypatch.setattr(history_module, "HISTORY_POINTS", HISTORY_POINTS)
    began = time.thread_time()
    history = curve(step % 7 for step in range(200_000))
    assert time.thread_time() - began < 3.0
    assert HISTORY_POINTS // 2 <= len(history) <= HISTORY_POINTS
    assert history.stride < 200
    low, high, mean = (np.frombuffer(column) for column in (history.low, history.high, history.mean))
    assert (low.min(), high.max()) == (0.0, 6.0)
    assert np.allclose(mean[:-1], 3.0, atol=0.05)


def test_more_values_than_can_be_counted_are_as_many_as_can_be() -> None:
    history = History()
    for step in range(2 * HISTORY_POINTS):
        history.append(step, step, 1.0, 2**64)
    assert set(history.counts) == {MOST_COUNTED}
    broken = History()
    broken.append(0, 0, math.nan, 2**64)
    assert broken.counts[0] == broken.broken[0] == MOST_COUNTED
