"""Distributions as columns of text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tui.charts.histogram import histogram_chart, mean_and_deviation
from tui.glyphs import UNICODE
from tui.lines import cells
from tui.panes.list import plain


@given(st.lists(st.integers(0, 50), max_size=40), st.integers(0, 60), st.integers(0, 12))
def test_any_counts_fit_any_room(counts: list[int], width: int, height: int) -> None:
    rows = histogram_chart((-1.0, 1e9), counts, width, height, UNICODE, "accent")
    assert len(rows) in (0, height)
    assert all(cells(row) <= width for row in rows)


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=40))
def test_no_bin_with_anything_in_it_is_drawn_empty(counts: list[int]) -> None:
    rows = histogram_chart((0.0, 1.0), counts, len(counts), 4, UNICODE, "accent")
    if rows:
        assert [sign != " " for sign in plain(rows[-2])] == [count > 0 for count in counts]


def test_columns_are_as_high_as_their_counts_and_stand_on_their_scale() -> None:
    rows = histogram_chart((0.0, 400.0), [0, 100, 200, 400], 12, 3, UNICODE, "accent")
    assert [plain(row) for row in rows] == ["         ███", "   ▄▄▄██████", "0      400.0"]


def test_bins_are_joined_until_they_are_equally_wide() -> None:
    rows = histogram_chart((0.0, 1.0), [1] * 30, 46, 3, UNICODE, "accent")
    assert cells(rows[0]) == 45


def test_constant_returns_have_no_range_to_draw() -> None:
    assert histogram_chart((5.0, float("inf")), [3.0], 20, 5, UNICODE, "accent") == []


def test_mean_and_deviation_come_from_sums() -> None:
    assert mean_and_deviation(4, 8.0, 24.0) == (2.0, 2.0**0.5)
