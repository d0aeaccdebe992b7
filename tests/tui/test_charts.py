"""Charts of anything that a run may produce."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tui.charts.axes import nice_step, step_range, ticks, value_range
from tui.charts.bar import bar
from tui.charts.line import GUTTER, Look, Mark, line_chart
from tui.charts.raster import braille_codes, braille_text, raster
from tui.charts.sampling import columns, joined, smoothed
from tui.charts.sparkline import sparkline, trend
from tui.glyphs import ASCII, UNICODE
from tui.lines import cells

anything = arrays.arrays(np.float64, st.integers(0, 120), elements=st.floats(width=64))
widths, heights = st.integers(0, 90), st.integers(0, 30)


def text_of(chart: list[tuple[object, ...]]) -> list[str]:
    return ["".join(span.text for span in row) for row in chart]


@settings(max_examples=40)
@given(anything, widths, heights, st.booleans())
def test_any_values_fit_any_size(ys: np.ndarray, width: int, height: int, has_braille: bool) -> None:
    look = Look(UNICODE if has_braille else ASCII)
    chart = line_chart(np.arange(len(ys), dtype=np.float64) * 100, ys, width, height, look)
    assert chart == [] or len(chart) == height
    assert all(cells(row) <= max(width, 0) for row in chart)


@settings(max_examples=40)
@given(anything, st.integers(0, 60))
def test_sparkline_has_exactly_its_width(values: np.ndarray, width: int) -> None:
    assert len(sparkline(values, width, UNICODE.levels)) == width
    assert trend(values) in (-1, 0, 1)


def test_a_million_points_keep_their_only_spike() -> None:
    ys = np.zeros(1_000_000)
    ys[123_456] = 7.0
    sampled = columns(np.arange(1e6), ys, (0.0, 1e6), 100)
    assert sampled.high.max() == 7.0
    assert np.flatnonzero(sampled.high) == [12]


def test_one_point_is_drawn() -> None:
    chart = text_of(line_chart(np.array([5.0]), np.array([3.0]), 40, 8, Look(UNICODE)))
    assert sum("⠀" < char <= "⣿" for row in chart for char in row) == 1


def test_constant_values_are_a_level_line() -> None:
    chart = text_of(line_chart(np.arange(100.0), np.full(100, 500.0), 60, 9, Look(UNICODE)))
    drawn = [row for row in chart if any("⠀" < char <= "⣿" for char in row)]
    assert len(drawn) == 1


def test_gap_stands_where_values_are_not_finite() -> None:
    ys = np.ones(100)
    ys[40:60] = np.nan
    sampled = columns(np.arange(100.0), ys, (0.0, 100.0), 100)
    filled = joined(sampled.mean, sampled.broken)
    assert np.isnan(filled[40:60]).all()
    assert np.isfinite(filled[:40]).all()
    axis = text_of(line_chart(np.arange(100.0), ys, 80, 10, Look(UNICODE)))[-1]
    assert "✗" in axis


def test_empty_columns_between_points_are_joined() -> None:
    filled = joined(np.array([0.0, np.nan, np.nan, 3.0]), np.zeros(4, dtype=bool))
    assert filled.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_smoothing_starts_at_the_first_value_and_anew_after_a_gap() -> None:
    smooth = smoothed(np.array([4.0, 4.0, np.nan, 8.0]), 0.6)
    assert smooth[[0, 1, 3]] == pytest.approx([4.0, 4.0, 8.0])
    assert np.isnan(smooth[2])


def test_steep_curve_has_no_holes() -> None:
    values = np.array([0.0, 1.0, 0.0])
    assert raster(values, values, (0.0, 1.0), 8).any(axis=1).all()


def test_braille_has_unicodes_order_of_dots() -> None:
    dots = np.zeros((4, 2), dtype=bool)
    dots[0, 0] = dots[3, 1] = True
    assert braille_text(braille_codes(dots)[0]) == "⢁"


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_value_axis_encloses_the_values(one: float, other: float) -> None:
    low, high = sorted(max(-1e300, min(1e300, v)) for v in (one, other))
    bottom, top = value_range(low, high)
    slack = 1e-6 * (top - bottom)
    assert bottom <= low + slack
    assert high - slack <= top
    assert bottom < top


@given(st.floats(0, 1e15), st.floats(0, 1e15))
def test_step_axis_encloses_the_steps_and_has_few_ticks(first: float, length: float) -> None:
    start, end = step_range(first, first + length)
    assert start <= first
    assert first + length <= end * (1 + 1e-9)
    assert len(ticks(start, end, 8)) <= 10


def test_growing_run_moves_its_axis_seldom() -> None:
    ends = {step_range(0.0, float(step))[1] for step in range(100_000, 200_000, 1000)}
    assert len(ends) <= 6


def test_steps_are_one_two_or_five() -> None:
    assert [nice_step(v, 10) for v in (1.0, 11.0, 30.0, 99.0)] == pytest.approx([0.1, 2.0, 5.0, 10.0])


def test_marks_give_way_to_labels() -> None:
    axis = text_of(
        line_chart(
            np.arange(0.0, 101.0), np.arange(101.0), 68, 8, Look(UNICODE), [Mark(0, "▴", "dim"), Mark(50, "★", "dim")]
        )
    )[-1]
    assert "★" in axis[GUTTER:]
    assert "50" in axis


def test_falling_rising_and_level_curves_are_told_apart() -> None:
    assert [trend(np.array(v)) for v in (np.arange(50.0), -np.arange(50.0), np.ones(50), [])] == [1, -1, 0, 0]


def test_bar_shows_only_zero_to_one() -> None:
    filled = [bar(share, 10, ASCII, "accent")[0].text.count("#") for share in (-1.0, 0.5, 2.0, float("nan"))]
    assert filled == [0, 5, 10, 0]
