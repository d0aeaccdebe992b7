"""Smoothing is by steps: neither how often a run reports nor how evenly changes it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_tui.tui.charts import smoothing as smoothing_module
from rl_tui.tui.charts.curve import Curve, plain_curve
from rl_tui.tui.charts.smoothing import moving_average, smooth_line

STEPS = 1_000_000.0


def test_smoothing_starts_at_the_first_value_and_again_after_a_gap() -> None:
    smooth = moving_average(np.array([4.0, 4.0, np.nan, 8.0]), 0.6, np.ones(4))
    assert smooth[[0, 1, 3]] == pytest.approx([4.0, 4.0, 8.0])
    assert np.isnan(smooth[2])


def test_smoothing_is_tensorboards_where_points_are_few() -> None:
    values = np.array([1.0, 5.0, 2.0, 8.0])
    expected, average = [], 0.0
    for at, value in enumerate(values.tolist(), 1):
        average = 0.9 * average + 0.1 * value
        expected.append(average / (1 - 0.9**at))
    xs, smooth = smooth_line(plain_curve(np.arange(4.0) * 1000, values), (0.0, 4000.0), 0.9)
    assert xs.tolist() == [0.0, 1000.0, 2000.0, 3000.0]
    assert smooth == pytest.approx(expected)


def test_smoothed_curve_does_not_depend_on_how_often_the_run_reports() -> None:
    xs = np.arange(0, 1_000_000, 100.0)
    ys = np.where(xs < 500_000, 0.0, 1.0)
    often, rarely = plain_curve(xs, ys), plain_curve(xs[::10], ys[::10])
    one, other = (np.interp(550_000, *smooth_line(curve, (0.0, 1e6), 0.99)) for curve in (often, rarely))
    assert one == pytest.approx(other, abs=0.02)


def test_smoothing_remembers_what_lies_before_the_window() -> None:
    curve = plain_curve(np.arange(1000.0), np.where(np.arange(1000) < 500, 0.0, 1.0))
    xs, smooth = smooth_line(curve, (500.0, 1000.0), 0.9)
    assert np.interp(500, xs, smooth) == pytest.approx(0.1, abs=0.01)


def test_huge_values_are_smoothed_without_overflow() -> None:
    curve = plain_curve(np.arange(2000.0), np.full(2000, 1.5e308))
    assert np.isfinite(smooth_line(curve, (0.0, 2000.0), 0.6)[1]).all()


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-(10**6), 10**6), st.integers(1, 40)), min_size=1, max_size=40),
    st.floats(0.05, 0.999),
)
def test_a_value_counts_as_all_the_steps_before_it(stretches: list[tuple[int, int]], weight: float) -> None:
    values, gaps = np.array([float(value) for value, _ in stretches]), np.array([gap for _, gap in stretches])
    even = moving_average(np.repeat(values, gaps), weight, np.ones(gaps.sum()))
    few = moving_average(values, weight, gaps.astype(np.float64))
    np.testing.assert_allclose(few, even[np.cumsum(gaps) - 1], rtol=1e-7, atol=1e-7 * np.abs(values).max())


def course(xs: np.ndarray) -> np.ndarray:
    """A return that rises, with a wave in it."""
    return xs / STEPS + 0.3 * np.sin(xs / 80_000)


def uneven(seed: int, num_points: int) -> Curve:
    """With as many points in each part of the run, but anywhere in it."""
    chance = np.random.default_rng(seed)
    xs = np.sort(chance.uniform(0, STEPS, num_points))
    return plain_curve(xs, course(xs))


@pytest.mark.parametrize(
    ("num_points", "smoothing", "within"), [(400, 0.6, 0.02), (400, 0.9, 0.05), (4000, 0.9, 0.004)]
)
def test_uneven_points_give_the_curve_of_even_ones(num_points: int, smoothing: float, within: float) -> None:
    """Up to the edges of a window, where the average has what lies before it. By points it was twice as far off."""
    even_xs = np.linspace(0, STEPS, num_points)
    even = plain_curve(even_xs, course(even_xs))
    for seed in range(80):
        window = (0.3 + seed / 200) * STEPS, (0.6 + seed / 200) * STEPS
        at = np.linspace(*window, 60)
        one, other = (smooth_line(each, window, smoothing) for each in (uneven(seed, num_points), even))
        assert np.interp(at, *one) == pytest.approx(np.interp(at, *other), abs=within)


def test_what_lies_before_a_wide_gap_hardly_counts() -> None:
    xs = np.append(np.arange(0, 50_000, 1000.0), np.arange(500_000, 550_000, 1000.0))
    smooth_xs, smooth = smooth_line(plain_curve(xs, np.where(xs < 100_000, 0.0, 1.0)), (0.0, STEPS), 0.9)
    assert smooth[smooth_xs >= 500_000].min() > 0.99


def test_many_values_at_one_step_are_one_point() -> None:
    """Such as the episodes of copies of an environment that all end at once."""
    xs = np.arange(0, 100_000, 1000.0)
    ys = np.where(xs < 50_000, 0.0, 1.0)
    alone, often = plain_curve(xs, ys), plain_curve(np.repeat(xs, 16), np.repeat(ys, 16))
    np.testing.assert_allclose(smooth_line(often, (0.0, 1e5), 0.9), smooth_line(alone, (0.0, 1e5), 0.9))


def test_a_window_shows_what_the_whole_curve_shows_there() -> None:
    curve = plain_curve(np.arange(0.0, 100_000.0, 1000.0), np.random.default_rng(1).normal(0, 1, 100))
    xs, smooth = smooth_line(curve, (0.0, 1e5), 0.9)
    window_xs, window_smooth = smooth_line(curve, (70_200.0, 80_500.0), 0.9)
    at = np.linspace(70_200.0, 80_500.0, 30)
    assert np.interp(at, window_xs, window_smooth) == pytest.approx(np.interp(at, xs, smooth), abs=0.02)
    assert window_xs[0] <= 70_000.0
    assert window_xs[-1] == 81_000.0, "the line goes on to the next point"


@given(st.lists(st.integers(-5000, 5000), min_size=1, max_size=80), st.sampled_from((0.25, 4.0, 256.0)))
def test_stretches_begin_with_the_first_of_their_points(places: list[int], unit: float) -> None:
    xs = np.sort(np.array(places)) / 2
    stretches = np.floor(xs / unit).tolist()
    expected = [at for at, stretch in enumerate(stretches) if at == 0 or stretch != stretches[at - 1]]
    assert smoothing_module._firsts(xs, unit).tolist() == expected
