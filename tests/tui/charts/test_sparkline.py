"""Curves in one line: what a cell stands for, and whether they rise."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rl_tui.tui.charts.sparkline import by_steps, by_time, sparkline
from rl_tui.tui.charts.trend import LEAST_POINTS, newest_steps, trend

anything = arrays(np.float64, st.integers(0, 120), elements=st.floats(width=64))


@settings(max_examples=60)
@given(anything, st.integers(0, 60), st.floats(1e-3, 1e5))
def test_any_curve_gives_cells_within_its_range(values: np.ndarray, num_cells: int, seconds: float) -> None:
    times = np.arange(len(values)) * 1.7 + 1e9
    cells = by_time(times, values, num_cells, seconds)
    assert len(cells) == num_cells
    known = cells[np.isfinite(cells)]
    if len(known):
        finite = np.clip(values[np.isfinite(values)], -1e300, 1e300)
        slack = 1e-9 * np.abs(finite).max()
        assert known.min() >= finite.min() - slack
        assert known.max() <= finite.max() + slack
    assert trend(times, values).direction in (-1, 0, 1)


def test_cell_holds_what_came_within_its_time() -> None:
    cells = by_time(np.array([0.0, 1.0, 100.0, 109.0, 110.0]), np.array([9.0, 9.0, 1.0, 3.0, 7.0]), 3, 30.0)
    assert cells.tolist()[1:] == [2.0, 7.0]


def test_only_the_newest_cell_changes_until_the_next_one_begins() -> None:
    times, values = np.arange(0.0, 700.0), np.sin(np.arange(700.0))
    before, after = by_time(times[:683], values[:683], 20, 600.0), by_time(times[:689], values[:689], 20, 600.0)
    np.testing.assert_array_equal(before[:-1], after[:-1])
    assert before[-1] != after[-1]


def test_young_curve_already_fills_half_of_the_cells() -> None:
    cells = by_time(np.arange(0.0, 35.0), np.arange(35.0), 20, 600.0)
    assert np.isfinite(cells).sum() >= 10


def test_cell_without_a_value_repeats_the_one_before_and_a_broken_one_is_a_gap() -> None:
    cells = by_time(np.array([0.5, 3.5, 5.5]), np.array([4.0, np.nan, 6.0]), 6, 6.0)
    np.testing.assert_array_equal(cells, [4.0, 4.0, 4.0, np.nan, np.nan, 6.0])


def test_sparkline_spans_its_levels_or_the_given_limits() -> None:
    assert sparkline(np.array([0.0, 1.0, np.nan, 2.0]), 6, "abc") == "  ab c"
    assert sparkline(np.array([0.0, 50.0, 100.0, 250.0]), 4, "abc", (0.0, 100.0)) == "abcc"
    assert sparkline(np.array([5.0, 5.0]), 2, "abc") == "bb"


def test_falling_rising_and_level_curves_are_distinguished() -> None:
    at = np.arange(50.0)
    curves = (at, -at, np.ones(50), np.array([1.0, 2.0]))
    assert [trend(at[: len(values)], values).direction for values in curves] == [1, -1, 0, 0]


def test_noise_has_no_trend() -> None:
    chance = np.random.default_rng(3)
    found = [trend(np.arange(300.0), chance.normal(400, 30, 300)).direction for _ in range(200)]
    assert sum(direction != 0 for direction in found) <= 4


def test_change_is_reported_in_percent_of_where_it_began() -> None:
    steps = np.arange(0.0, 1201.0)
    rising = trend(steps, 100 + steps / 60)
    assert (rising.direction, rising.steps) == (1, 300.0)
    assert rising.percent is not None
    np.testing.assert_allclose(rising.percent, 100 * 5 / 115)
    assert trend(steps, steps - 900).percent is None  # begins at zero


def test_huge_values_have_a_trend_too() -> None:
    assert trend(np.arange(9.0), np.arange(9.0) * 1e299).direction == 1


def test_trend_is_about_the_last_quarter_and_of_a_young_curve_about_all_of_it() -> None:
    assert newest_steps(np.arange(0.0, 100_001.0, 100.0)) == 25_000.0
    assert newest_steps(np.arange(1000.0, 1000.0 + LEAST_POINTS)) == LEAST_POINTS - 1
    steps = np.arange(0.0, 1000.0)
    assert trend(steps, np.minimum(steps, 700)).direction == 0, "long level"


def test_trend_starts_over_after_a_step() -> None:
    steps = np.arange(0.0, 100.0)
    values = np.where(steps <= 80, 500.0, steps)  # another task is harder, and it learns that
    assert [trend(steps, values).direction, trend(steps, values, since=80.0).direction] == [-1, 1]


@given(st.integers(1, 10**7), st.integers(1, 40))
def test_cells_are_round_numbers_of_steps_and_at_most_a_quarter_is_empty(num_steps: int, num_cells: int) -> None:
    steps = np.arange(0.0, num_steps + 1.0, max(1.0, num_steps / 500))
    cells = by_steps(steps, steps, num_cells)
    num_known = np.isfinite(cells).sum()
    assert num_known >= min(0.7 * num_cells - 1, num_steps), "hardly more than all of it"
    assert num_cells == 1 or cells[-num_known] < max(1.0, 2 * num_steps / num_cells), "all of it"
    assert cells[-1] > num_steps - max(2.0, 2 * num_steps / num_cells)


def test_only_the_newest_cell_changes_while_a_run_grows() -> None:
    steps, values = np.arange(0.0, 8000.0, 10.0), np.sin(np.arange(800.0))
    before, after = (by_steps(steps[:end], values[:end], 20) for end in (785, 795))
    np.testing.assert_array_equal(before[:-1], after[:-1])
    assert before[-1] != after[-1]
