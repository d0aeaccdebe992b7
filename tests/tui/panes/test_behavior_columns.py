"""Which columns of the table of behaviors give way on narrow screens."""

from __future__ import annotations

import pytest

from rl_tui.tui.panes.behaviors import COLUMNS, LEAST_SPARKLINE, fit_columns


@pytest.mark.parametrize("width", [46, 50, 52, 56, 60, 80, 90, 100, 110, 120, 140, 200])
@pytest.mark.parametrize("longest_name", [6, 14, 40])
def test_the_trend_is_long_enough_to_read_or_absent(width: int, longest_name: int) -> None:
    layout = fit_columns(width, longest_name, COLUMNS)
    assert layout.sparkline_width == 0 or layout.sparkline_width >= LEAST_SPARKLINE
    if width >= 80:
        assert layout.sparkline_width >= 8
    titles = [column.title for column in layout.columns]
    assert "steps" in titles


def test_beside_another_pane_at_100_columns_the_share_done_gives_way_to_the_trend() -> None:
    for possible, value in (([each for each in COLUMNS if each.title != "elo"], "mean 100"), (COLUMNS, "elo")):
        layout = fit_columns(52, 7, possible)
        assert [column.title for column in layout.columns] == ["steps", value]
        assert layout.sparkline_width >= LEAST_SPARKLINE
