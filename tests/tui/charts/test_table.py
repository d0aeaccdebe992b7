"""Curves as a table: every point in sight stands in it once, as it is."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from rl_tui.tui.charts.curve import Curve, plain_curve
from rl_tui.tui.charts.figure import Figure
from rl_tui.tui.charts.table import rows_of
from rl_tui.tui.charts.window import Viewport

ALL = Viewport((0.0, 10.0), (0.0, 10.0), 9.0)


def curve(source: str, xs: list[float], ys: list[float]) -> Curve:
    """A curve from there."""
    return replace(plain_curve(np.array(xs, float), np.array(ys, float), metric=source), source=source)


def test_nothing_to_draw_is_no_table() -> None:
    assert list(rows_of([])) == []


def test_curves_that_have_other_points_leave_cells_empty() -> None:
    figure = Figure((curve("a", [1, 2], [0.1, 0.2]), curve("b", [2, 3.5], [5, 6])), ALL)
    assert list(rows_of([figure])) == [
        ["step", "a mean", "a lowest", "a highest", "b mean", "b lowest", "b highest"],
        [1, 0.1, 0.1, 0.1, "", "", ""],
        [2, 0.2, 0.2, 0.2, 5, 5, 5],
        [3.5, "", "", "", 6, 6, 6],
    ]


def test_points_at_the_same_step_are_all_kept() -> None:
    rows = list(rows_of([Figure((curve("a", [1, 1, 1], [7, 8, 9]),), ALL)]))
    assert [row[:2] for row in rows[1:]] == [[1, 7], [1, 8], [1, 9]]


def test_curve_that_two_charts_draw_stands_there_once() -> None:
    both = Figure((curve("a", [1], [2]),), ALL), Figure((curve("b", [1], [3]), curve("a", [1], [2])), ALL)
    assert next(rows_of(both)) == ["step", "a mean", "a lowest", "a highest", "b mean", "b lowest", "b highest"]


def test_gap_is_nan_and_is_not_bridged_by_the_smoothed_value() -> None:
    figure = Figure((curve("a", [1, 2, 3], [4, math.nan, 6]),), ALL, smoothing=0.5)
    rows = list(rows_of([figure]))
    assert rows[0][4] == "a smoothed 0.5"
    assert [str(row[4]) for row in rows[1:]] == ["4.0", "nan", "6.0"]


def test_value_measured_apart_is_not_smoothed() -> None:
    figure = Figure((replace(curve("a", [1], [4]), has_points=True),), ALL, smoothing=0.5)
    assert next(rows_of([figure])) == ["step", "a mean", "a lowest", "a highest"]


def test_axis_names_its_unit() -> None:
    figure = Figure((curve("a", [1], [4]),), ALL)
    heads = [next(rows_of([replace(figure, x_axis=axis)]))[0] for axis in ("steps", "wall", "relative")]  # type: ignore[arg-type]
    assert heads == ["step", "seconds since 1970", "seconds since the start"]
