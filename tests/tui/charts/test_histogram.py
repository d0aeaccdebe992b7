"""Distributions as columns of text, and as a list."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_tui.engine.session.messages import Histogram
from rl_tui.tui.charts.histogram import bins_of, gutter_of, histogram_chart, histogram_rows, mean_and_deviation
from rl_tui.tui.drawing.glyphs import UNICODE
from rl_tui.tui.drawing.lines import cells
from rl_tui.tui.panes.list import plain
from tests.tui import scenes
from tests.tui.driver import Driven
from tests.tui.screens.test_detail import read_all


def a_histogram(counts: list[int], low: float = 0.0, high: float = 1.0) -> Histogram:
    """So many values in equal bins."""
    limits = tuple(low + (high - low) * (at + 1) / len(counts) for at in range(len(counts)))
    return Histogram(low, high, sum(counts), 0.0, 0.0, limits, tuple(map(float, counts)))


def chart_of(histogram: Histogram, width: int, height: int) -> list[str]:
    """Its columns in such a room."""
    gutter = gutter_of(histogram)
    rows = histogram_chart(bins_of(histogram, width - gutter), gutter, width, height, UNICODE, "accent")
    return [plain(row) for row in rows]


@given(st.lists(st.integers(0, 50), max_size=40), st.integers(0, 60), st.integers(0, 12))
def test_any_counts_fit_any_room(counts: list[int], width: int, height: int) -> None:
    histogram = a_histogram(counts, -1.0, 1e9)
    rows = chart_of(histogram, width, height)
    assert len(rows) in (0, height)
    assert all(len(row) <= width for row in rows)
    assert all(cells(row) <= max(width, 40) for row in histogram_rows(histogram, width, UNICODE, "accent"))


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=40))
def test_no_bin_with_anything_in_it_is_drawn_empty(counts: list[int]) -> None:
    histogram = a_histogram(counts)
    rows = chart_of(histogram, gutter_of(histogram) + len(counts), 4)
    if rows:
        assert [sign != " " for sign in rows[-2].partition("┤")[2]] == [count > 0 for count in counts]


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=40), st.integers(1, 60))
def test_bins_hold_every_value_and_touch(counts: list[int], width: int) -> None:
    bins = bins_of(a_histogram(counts, -3.0, 7.0), width)
    assert sum(each.num for each in bins) == sum(counts)
    assert all(one.high == pytest.approx(other.low) for one, other in pairwise(bins))


def test_columns_are_as_high_as_their_counts_which_stand_beside_them() -> None:
    assert chart_of(a_histogram([0, 100, 200, 400], 0.0, 400.0), 17, 4) == [
        "400 ┤         ███",
        "    │      ▄▄▄███",
        "  0 ┤   ▆▆▆██████",
        "     0      400.0",
    ]


def test_list_says_the_range_and_the_count_of_each_bin() -> None:
    rows = [plain(row) for row in histogram_rows(a_histogram([1, 4], -2.0, 2.0), 36, UNICODE, "accent")]
    assert rows == ["        0 to    2.000  ━━━━━━━━━━ 4", "   -2.000 to        0  ━━──────── 1"]


def test_bins_are_joined_until_they_are_equally_wide() -> None:
    assert [len(bins_of(a_histogram([1] * 30), width)) for width in (46, 12, 1)] == [15, 10, 1]


def test_returns_that_are_all_the_same_are_one_bin() -> None:
    histogram = Histogram(500.0, 500.0, 8, 4000.0, 2e6, (499.0, 501.0), (0.0, 8.0))
    assert bins_of(histogram, 40) == [(500.0, 500.0, 8.0)]
    assert [row.rstrip() for row in chart_of(histogram, 43, 4)] == [
        "8 ┤" + " " * 17 + "█" * 6,
        "  │" + " " * 17 + "█" * 6,
        "0 ┤" + " " * 17 + "█" * 6,
        "   " + " " * 17 + "500.0",
    ]


@given(st.integers(1, 60), st.integers(2, 12), st.floats(-1e300, 1e300))
def test_one_value_is_one_bar_in_any_room(width: int, height: int, value: float) -> None:
    rows = chart_of(Histogram(value, value, 8, 8 * value, 0.0, (value,), (8.0,)), width, height)
    assert len(rows) in (0, height)
    assert all(len(row) <= width for row in rows)
    assert all(re.fullmatch(r"[^█]+█+ *", row) for row in rows[:-1])


def test_infinite_returns_have_no_range_to_draw() -> None:
    assert chart_of(Histogram(5.0, float("inf"), 3, 1.0, 1.0, (1.0,), (3.0,)), 20, 5) == []


@pytest.mark.parametrize("size", [(40, 10), (80, 24)])
async def test_counts_can_be_read_at_every_size(size: tuple[int, int]) -> None:
    view = scenes.healthy(1).view()
    histogram = view.behaviors["Walker"].histogram
    assert histogram is not None
    async with Driven(view, size, opened="detail") as driven:
        published = await read_all(driven)
        assert f"{histogram.count} episodes" in published
    bins = {low: int(num) for low, num in re.findall(r"(\S+) to \S+ [━─]+ (\d+)", published)}
    assert len(bins) == 10
    assert sum(bins.values()) == histogram.count


def test_mean_and_deviation_come_from_sums() -> None:
    assert mean_and_deviation(4, 8.0, 24.0) == (2.0, 2.0**0.5)
