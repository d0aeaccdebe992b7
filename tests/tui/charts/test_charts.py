"""Charts of anything that a run may produce."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rl_tui.engine.session.history import HISTORY_POINTS, History
from rl_tui.tui.charts.around_plot import GUTTER
from rl_tui.tui.charts.axes import nice_step, step_range, ticks, value_range
from rl_tui.tui.charts.curve import Curve, history_curve, plain_curve
from rl_tui.tui.charts.drawing import ASCII_LINES, ChartStyle, draw, sample_for
from rl_tui.tui.charts.figure import Figure, Mark, Samples, crosshair_points, sample
from rl_tui.tui.charts.line_sample import line_sample
from rl_tui.tui.charts.outside import outside
from rl_tui.tui.charts.percent import bar
from rl_tui.tui.charts.raster import BRAILLE, bars, braille_codes, dot_rows, filled
from rl_tui.tui.charts.sampling import columns, polyline
from rl_tui.tui.charts.scale import Scale, scale_of
from rl_tui.tui.charts.window import Viewport
from rl_tui.tui.charts.x_axis import full_range, step_label, x_ticks
from rl_tui.tui.charts.y_range import range_text, typed_range
from rl_tui.tui.charts.y_ticks import Rows, even_ticks, tick_labels
from rl_tui.tui.drawing.glyphs import ASCII, UNICODE, Glyphs
from rl_tui.tui.drawing.lines import Line, cells
from rl_tui.tui.panes.crosshair_words import copied, cross_words

anything = arrays.arrays(np.float64, st.integers(1, 120), elements=st.floats(width=64))
widths, heights = st.integers(0, 90), st.integers(0, 30)
styles = st.builds(ChartStyle, st.sampled_from([UNICODE, ASCII]), st.booleans())
smoothings = st.sampled_from([0.0, 0.6, 0.999])


def text_of(chart: list[Line]) -> list[str]:
    return ["".join(span.text for span in row) for row in chart]


def figure(*curves: Curve, shown: tuple[float, float] | None = None, smoothing: float = 0.0, **more: object) -> Figure:
    full = full_range([curve.extent for curve in curves], "steps")
    assert full is not None
    return replace(Figure(curves, Viewport(shown or full, full, full[1]), smoothing=smoothing), **more)


def is_dot(char: str) -> bool:
    return chr(BRAILLE) < char <= chr(BRAILLE + 255)


@settings(max_examples=150)
@given(anything, widths, heights, styles, smoothings, st.booleans(), st.booleans())
def test_any_values_fit_any_size(
    ys: np.ndarray, width: int, height: int, style: ChartStyle, smoothing: float, is_log: bool, has_cross: bool
) -> None:
    curve = plain_curve(np.arange(len(ys), dtype=np.float64) * 100, ys)
    chart = draw(
        figure(curve, smoothing=smoothing, is_log=is_log, crosshair=120.0 if has_cross else None), width, height, style
    )
    assert chart == [] or len(chart) == height
    assert all(cells(row) == width for row in chart)
    assert bool(chart) == (width > GUTTER and height > 1 and bool(np.isfinite(ys).any()))


@settings(max_examples=60)
@given(st.lists(anything, min_size=2, max_size=9), styles, smoothings, st.floats(0, 9000), st.floats(1e-3, 9000))
def test_any_curves_fit_together_in_any_window(
    values: list[np.ndarray], style: ChartStyle, smoothing: float, start: float, length: float
) -> None:
    curves = [
        plain_curve(np.arange(len(ys), dtype=np.float64) * 100, ys, label=str(at), metric=str(at % 3), dash=at)
        for at, ys in enumerate(values)
    ]
    chart = draw(figure(*curves, shown=(start, start + length), smoothing=smoothing), 60, 12, style)
    assert all(cells(row) == 60 for row in chart)


def test_a_million_points_keep_their_only_spike_and_their_only_gap() -> None:
    ys = np.zeros(1_000_000)
    ys[123_456], ys[654_321] = 7.0, np.nan
    curve = plain_curve(np.arange(1e6), ys)
    for drawn in (curve, curve.within((0.0, 1e6))):
        sampled = columns(drawn, (0.0, 1e6), 100)
        assert np.flatnonzero(sampled.high) == [12]
        assert sampled.high.max() == 7.0
        assert np.flatnonzero(sampled.broken) == [65]
    assert curve.within((0.0, 1e6)) is curve.coarse
    assert curve.within((120_000.0, 125_000.0)) is curve  # every point, where there are few


def test_value_at_the_very_end_of_the_axis_is_drawn() -> None:
    sampled = columns(plain_curve(np.arange(101.0), np.where(np.arange(101) == 100, 7.0, 0.0)), (0.0, 100.0), 50)
    assert np.flatnonzero(sampled.high) == [49]


def test_history_that_was_halved_keeps_its_only_spike() -> None:
    history = History()
    for step in range(3 * HISTORY_POINTS):
        history.append(step, step, 7.0 if step == 1234 else 0.0)
    sampled = columns(history_curve(history, "steps", 0.0), (0.0, 3.0 * HISTORY_POINTS), 100)
    assert np.flatnonzero(sampled.high) == [1234 * 100 // (3 * HISTORY_POINTS)]


def test_one_point_is_drawn() -> None:
    chart = text_of(draw(figure(plain_curve(np.array([5.0]), np.array([3.0]))), 40, 8, ChartStyle(UNICODE)))
    assert sum(is_dot(char) for row in chart for char in row) == 1


def test_one_point_between_two_gaps_is_drawn() -> None:
    line = polyline(np.array([1.0, 3.2, 5.0]), np.array([np.nan, 4.0, np.nan]), 8)
    assert line[3] == 4.0
    assert np.isnan(np.delete(line, 3)).all()


def test_constant_values_are_a_level_line() -> None:
    chart = text_of(draw(figure(plain_curve(np.arange(100.0), np.full(100, 500.0))), 60, 9, ChartStyle(UNICODE)))
    assert sum(any(is_dot(char) for char in row) for row in chart) == 1


@pytest.mark.parametrize("smoothing", [0.0, 0.9])
def test_gap_stands_where_values_are_not_finite(smoothing: float) -> None:
    ys = np.ones(100)
    ys[40:60] = np.nan
    drawn = figure(plain_curve(np.arange(100.0), ys), smoothing=smoothing)
    sampled = sample(drawn, 100, True).curves[0]
    line = sampled.spread.low if sampled.line is None else sampled.line
    assert np.isnan(line[41:59]).all()
    assert np.isfinite(line[:39]).all()
    assert np.isfinite(line[61:]).all()
    assert "✗" in text_of(draw(drawn, 80, 10, ChartStyle(UNICODE)))[-1]


def test_infinity_is_a_gap_too() -> None:
    sampled = columns(plain_curve(np.arange(4.0), np.array([1.0, np.inf, -np.inf, 2.0])), (0.0, 4.0), 4)
    assert sampled.broken.tolist() == [False, True, True, False]
    assert sampled.extremes == (1.0, 2.0)


def test_columns_between_two_points_are_joined_also_beyond_the_window() -> None:
    line = columns(plain_curve(np.array([0.0, 10.0]), np.array([0.0, 10.0])), (4.0, 6.0), 4)
    assert line.low == pytest.approx([4.25, 4.75, 5.25, 5.75])


def test_steep_curve_has_no_holes() -> None:
    values = np.array([0.0, 1.0, 0.0])
    assert filled(bars(values, values, (0.0, 1.0), 8), 8).any(axis=1).all()


def test_braille_has_unicodes_order_of_dots() -> None:
    values = np.array([1.0, 0.0])
    alone = bars(values, np.array([1.0, np.nan]), (0.0, 1.0), 4)
    assert chr(BRAILLE + int(braille_codes(alone, 1)[0, 0])) == "⠁"
    for row, bits in enumerate((0x08, 0x10, 0x20, 0x80)):
        dot = bars(np.array([np.nan, 3.0 - row]), np.array([np.nan, 3.0 - row]), (0.0, 3.0), 4)
        assert braille_codes(dot, 1)[0, 0] == bits


@settings(max_examples=80)
@given(st.integers(2, 40), st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.booleans(), st.booleans())
@example(16, 6.3e-70, 50_001.0, True, False)
def test_tick_stands_beside_the_row_of_its_value(
    height: int, low: float, length: float, is_log: bool, has_braille: bool
) -> None:
    scale = scale_of(low, low + length, is_log, rows=Rows(height - 1, 4 if has_braille else 1))
    style = ChartStyle(UNICODE if has_braille else ASCII)
    xs = np.arange(20.0)
    for tick in scale.ticks(max(2, (height - 1) // 3)):
        if not low <= tick.at <= low + length:
            continue
        level = np.full(20, tick.at)
        level[0], level[-1] = low, low + length  # the same scale
        rows = text_of(draw(figure(plain_curve(xs, level), is_log=is_log), 60, height, style))[:-1]
        label = [row[:GUTTER].strip("│|┤+ ") for row in rows]
        drawn = [any(is_dot(char) or char in ASCII_LINES for char in row[GUTTER + 15 : GUTTER + 35]) for row in rows]
        if tick.label in label and label.count(tick.label) == 1:
            assert drawn[label.index(tick.label)]


@given(st.integers(1, 12), st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
@example(1, -114243.0, 1.0)
def test_linear_axis_has_two_ticks_however_low_it_is(num_ticks: int, low: float, length: float) -> None:
    length = max(length, abs(low) / 50)  # of "-126k" and "-125k", which are 0.8 % apart, two must lie in it
    assert len(scale_of(low, low + length, False).ticks(num_ticks)) >= 2


@pytest.mark.parametrize("value", [5e-324, -5e-324, 1e-300, 1.7e308])
def test_value_at_the_edge_of_what_numbers_hold_has_an_axis(value: float) -> None:
    for rows in (2, 15, 40):
        scale = scale_of(min(0.0, value), max(0.0, value), False, rows=Rows(rows, 4))
        assert scale.ticks(4)


WHOLE = st.floats(-1e12, 1e12).filter(lambda value: value == 0 or abs(value) > 1e-9)


def gutter_labels(chart: list[Line]) -> dict[int, str]:
    """By row of the plot."""
    rows = [row[:GUTTER] for row in text_of(chart)[:-1]]
    return {at: row.rstrip("┤+ ").strip() for at, row in enumerate(rows) if row.rstrip("│| ").strip()}


@settings(max_examples=200)
@given(st.integers(5, 50), WHOLE, st.floats(1e-6, 1e9), styles)
@example(9, 226.4, 529.1, ChartStyle(UNICODE))
@example(9, 0.0, 500.0, ChartStyle(UNICODE))
def test_ticks_stand_at_equal_distances_and_go_as_far_as_the_curve(
    height: int, low: float, length: float, style: ChartStyle
) -> None:
    ys = np.array([low, low + length, low + length])
    drawn = sample_of(ys, height, style)
    labels = gutter_labels(draw(drawn[0], 60, height, style, drawn[1]))
    scale = drawn[1].scales[""]
    step = scale.values[1] - scale.values[0]
    assert scale.values[0] - step / 2 <= low + 1e-6 * step
    assert low + length <= scale.values[-1] + step / 4 + 1e-6 * step, "a curve's top is near a number"
    assert len(set(labels.values())) == len(labels)
    rows = sorted(labels)
    if len(rows) == len(scale.values):
        assert len({after - before for before, after in pairwise(rows)}) == 1
    else:
        assert length < abs(low) / 100, "labels are left out only where their first digits are the same"


def sample_of(ys: np.ndarray, height: int, style: ChartStyle, **more: object) -> tuple[Figure, Samples]:
    shown = figure(plain_curve(np.arange(len(ys)) * 10.0, ys), **more)
    return shown, sample_for(shown, 60, height, style)


@pytest.mark.parametrize("height", range(6, 45))
def test_curve_at_the_top_lies_on_a_labeled_row(height: int) -> None:
    ys = np.concatenate((np.linspace(10, 500, 40), np.full(60, 500.0)))
    chart = draw(sample_of(ys, height, ChartStyle(UNICODE))[0], 60, height, ChartStyle(UNICODE))
    labels = gutter_labels(chart)
    level = next(at for at, row in enumerate(text_of(chart)) if is_dot(row[45]))
    assert labels[level] == "500"


def test_growing_curve_moves_the_ticks_rarely() -> None:
    seen = [even_ticks(0.0, 100.0 + step, Rows(18, 4)) for step in range(300)]
    changes = [at for at, (before, after) in enumerate(pairwise(seen)) if before != after]
    assert len(changes) <= 12


@pytest.mark.parametrize(("values", "step", "labels"), [
    ((0.0, 200.0, 400.0), 200.0, ["0", "200", "400"]),
    ((0.0001, 0.0002, 0.0003), 0.0001, ["0.0001", "0.0002", "0.0003"]),
    ((0.00025, 0.0003, 0.00035), 0.00005, ["2.5e-4", "3.0e-4", "3.5e-4"]),
    ((-0.0004, 0.0, 0.0004), 0.0004, ["-4e-4", "0", "4e-4"]),
    ((0.0, 2.5, 5.0), 2.5, ["0", "2.5", "5.0"]),
    ((0.0, 500_000.0, 1e6), 500_000.0, ["0", "500k", "1M"]),
    ((1_000_000.0, 1_000_000.5, 1_000_001.0), 0.5, ["1M", "", ""]),
])  # fmt: skip
def test_labels_have_one_form_and_no_label_is_there_twice(
    values: tuple[float, ...], step: float, labels: list[str]
) -> None:
    assert tick_labels(values, step) == labels


def test_logarithmic_ticks_stand_at_equal_distances_too() -> None:
    ys = np.geomspace(0.002, 300, 50)
    labels = gutter_labels(draw(sample_of(ys, 20, ChartStyle(UNICODE), is_log=True)[0], 60, 20, ChartStyle(UNICODE)))
    assert set(labels.values()) == {"0.001", "0.01", "0.1", "1", "10", "100", "1000"}
    assert {after - before for before, after in pairwise(sorted(labels))} == {3}


@pytest.mark.parametrize("chosen", [(0.0, 500.0), (0.0, None), (-1.0, 1.0)])
def test_axis_that_was_chosen_keeps_its_ends_and_has_ticks(chosen: tuple[float, float | None]) -> None:
    scale = scale_of(-0.5, 400.0, False, chosen, Rows(16, 4))
    assert scale.bottom == chosen[0]
    assert chosen[1] is None or scale.top == chosen[1]
    assert len(scale.ticks(5)) >= 2


def test_half_rows_of_dots_all_go_the_same_way() -> None:
    assert dot_rows(np.array([0.5, 1.5, 2.5]), (0.0, 4.0), 5).tolist() == [4.0, 3.0, 2.0]


def test_what_is_clipped_may_lie_as_far_as_a_float_can() -> None:
    values = np.array([0.0, 1.7e308, -1.7e308, np.nan])
    assert dot_rows(values, (0.0, 1e-60), 5).tolist()[:3] == [4.0, 0.0, 4.0]
    places = Scale("symlog", 0.0, 1e-60, 1e-63).places(values)
    assert np.isfinite(places).tolist() == [True, True, True, False]


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_value_axis_encloses_the_values(one: float, other: float) -> None:
    low, high = sorted(max(-1e300, min(1e300, v)) for v in (one, other))
    bottom, top = value_range(low, high)
    slack = 1e-6 * (top - bottom)
    assert bottom <= low + slack
    assert high - slack <= top
    assert bottom < top


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
def test_logarithmic_axis_encloses_the_values_and_keeps_their_order(one: float, other: float) -> None:
    low, high = sorted((one, other))
    scale = scale_of(low, high, True)
    assert scale.kind == ("log" if low > 0 else "symlog")
    bottom, top = scale.y_range
    places = scale.places(np.array([low, high]))
    assert bottom < top
    assert bottom - 1e-6 <= places[0] <= places[1] <= top + 1e-6
    assert len(scale.ticks(6)) <= 16
    assert all(len(tick.label) <= 8 for tick in scale.ticks(6))


@given(st.floats(0, 1e15), st.floats(0, 1e15))
def test_step_axis_encloses_the_steps_and_has_few_ticks(first: float, length: float) -> None:
    start, end = step_range(first, first + length)
    assert start <= first
    assert first + length <= end * (1 + 1e-9)
    assert len(ticks(start, end, 8)) <= 10


def test_growing_run_moves_its_axes_rarely() -> None:
    assert len({step_range(0.0, float(step))[1] for step in range(100_000, 200_000, 1000)}) <= 6
    assert len({full_range([(0.0, float(s))], "relative") for s in range(3600, 7200, 10)}) <= 7
    assert len({value_range(0.0, 100.0 + step) for step in range(100)}) <= 11


def test_steps_are_one_two_or_five() -> None:
    assert [nice_step(v, 10) for v in (1.0, 11.0, 30.0, 99.0)] == pytest.approx([0.1, 2.0, 5.0, 10.0])


@pytest.mark.parametrize(("step", "grain", "label"), [
    (0, 1, "0"), (50_000, 10_000, "50k"), (1_234_000, 1_000, "1.234M"), (1_234_567, 1, "1.234567M"), (2.5, 0.1, "2.5"),
])  # fmt: skip
def test_steps_are_reported_as_exactly_as_needed(step: float, grain: float, label: str) -> None:
    assert step_label(step, grain) == label


@pytest.fixture
def in_kathmandu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Kathmandu")  # 5 h 45 min from UTC
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_clock_ticks_are_round_where_the_user_lives(in_kathmandu: None) -> None:
    labels = [tick.label for tick in x_ticks((1_795_000_000.0, 1_795_000_000.0 + 7 * 3600), "wall", 8)]
    assert labels == ["17:00", "18:00", "19:00", "20:00", "21:00", "22:00", "23:00"]


def test_clock_shows_seconds_when_near_and_dates_when_far() -> None:
    noon = 1_795_003_200.0
    assert [tick.label for tick in x_ticks((noon, noon + 60), "wall", 4)][1] == "12:00:15"
    assert "Nov 20" in [tick.label for tick in x_ticks((noon, noon + 5 * 86400), "wall", 6)]


def test_time_since_the_start_is_reported_in_hours_and_minutes() -> None:
    labels = [tick.label for tick in x_ticks((0.0, 7200.0), "relative", 5)]
    assert labels == ["0", "30m", "1h00", "1h30", "2h00"]


def test_marks_yield_to_labels() -> None:
    happened = (Mark(0, "▴", "dim"), Mark(41, "★", "dim"))
    curve = plain_curve(np.arange(0.0, 101.0), np.arange(101.0))
    axis = text_of(draw(figure(curve, marks=happened), 68, 8, ChartStyle(UNICODE)))[-1]
    assert "★40" in axis


@pytest.mark.parametrize("at", [0.0, 20.0, 21.0, 40.0, 99.9])
@pytest.mark.parametrize("sign", ["★", "✗", "┤"])
def test_labels_of_the_x_axis_are_readable_whatever_stands_there(sign: str, at: float) -> None:
    ys = np.arange(101.0)
    ys[int(at)] = np.nan if sign == "✗" else 0.0
    curve = plain_curve(np.arange(0.0, 101.0), ys)
    happened = (Mark(at, "★", "dim"),) if sign == "★" else ()
    crosshair = at if sign == "┤" else None
    axis = text_of(draw(figure(curve, marks=happened, crosshair=crosshair), 68, 8, ChartStyle(UNICODE)))[-1]
    assert re.findall(r"\d+", axis) == ["0", "20", "40", "60", "80"]
    assert sign in axis or sign == "┤", "the crosshair is seen above the axis"


def test_what_yields_to_a_label_hides_no_other_mark() -> None:
    happened = (Mark(1.9, "▴", "dim"), Mark(0, "¶", "strong"), Mark(0, "★", "warning"))
    curve = plain_curve(np.arange(0.0, 101.0), np.arange(101.0))
    axis = text_of(draw(figure(curve, marks=happened), 68, 8, ChartStyle(UNICODE)))[-1]
    assert axis.lstrip().startswith("└0▴¶★")


def test_mark_out_of_sight_is_not_drawn() -> None:
    curve = plain_curve(np.arange(0.0, 101.0), np.arange(101.0))
    axis = text_of(draw(figure(curve, shown=(50.0, 100.0), marks=(Mark(20, "★", "dim"),)), 68, 8, ChartStyle(UNICODE)))[
        -1
    ]
    assert "★" not in axis


def spiky(**more: object) -> Figure:
    """A wave from -10 to 10, of which one value is 9000 and one is -400."""
    ys = np.sin(np.arange(1000) / 40) * 10
    ys[300], ys[600] = 9000.0, -400.0
    return figure(plain_curve(np.arange(1000.0), ys, metric="m"), **more)


def test_outliers_are_left_out_of_the_axis_and_pointed_at() -> None:
    (with_them,), (without,) = (sample(spiky(clips=clips), 160, True).scales.values() for clips in (False, True))
    assert with_them.top >= 9000
    assert (without.bottom, without.top) == (-10, 10)
    chart = text_of(draw(spiky(clips=True), 80 + GUTTER, 12, ChartStyle(UNICODE)))
    assert [row[GUTTER:].index("▲") for row in chart if "▲" in row] == [24]
    assert [row[GUTTER:].index("▼") for row in chart if "▼" in row] == [48]
    assert "▲" in chart[0]
    assert "▼" in chart[-2]
    found = outside(sample(spiky(clips=True), 160, True))
    assert found is not None
    assert (found.highest, found.lowest) == (9000, -400)
    assert 0 < found.above < 0.03


@pytest.mark.parametrize("is_log", [False, True])
def test_curve_without_outliers_is_not_clipped(is_log: bool) -> None:
    """The newest values of a curve that rises are its highest: they must stay in sight."""
    curve = plain_curve(np.arange(1000.0), np.arange(1000.0) + 1, metric="m")
    plain, clipped = (sample(figure(curve, is_log=is_log, clips=clips), 160, True) for clips in (False, True))
    assert plain.scales == clipped.scales
    assert outside(clipped) is None


@pytest.mark.parametrize(
    ("chosen", "is_log", "expected"),
    [
        ((-3.3, 4.1), False, (-3.3, 4.1)),
        ((0.0, None), False, (0.0, 9000.0)),
        ((None, -500.0), False, (-550.0, -500.0)),
        ((2.0, 50.0), True, (2.0, 50.0)),
        ((0.0, 50.0), True, (0.0, 50.0)),
    ],
)
def test_range_by_hand_is_taken_as_it_is(
    chosen: tuple[float | None, float | None], is_log: bool, expected: tuple[float, float]
) -> None:
    drawn = spiky(y_ranges={"m": chosen}, is_log=is_log)
    (scale,) = sample(drawn, 160, True).scales.values()
    assert (scale.bottom, scale.top) == pytest.approx(expected, rel=0.01)
    assert any(sign in "".join(text_of(draw(drawn, 80, 12, ChartStyle(UNICODE)))) for sign in "▲▼")


def test_range_by_hand_is_of_its_metric_alone() -> None:
    xs = np.arange(50.0)
    one, other = plain_curve(xs, xs, metric="one"), plain_curve(xs, xs, metric="other")
    scales = sample(figure(one, other, y_ranges={"one": (0.0, 7.0)}), 40, True).scales
    assert (scales["one"].top, scales["other"].top) == (7, 50)


@pytest.mark.parametrize(
    ("typed", "chosen"),
    [
        ("0 500", (0, 500)), (" 0 ..", (0, None)), ("0..", (0, None)), (".. -2.5", (None, -2.5)),
        ("1e-3 .. 1", (0.001, 1)), ("", (None, None)), ("auto", (None, None)),
    ],
)  # fmt: skip
def test_range_is_typed_in_a_few_forms(typed: str, chosen: tuple[float | None, float | None]) -> None:
    assert typed_range(typed) == chosen
    assert typed_range(range_text(typed_range(typed))) == chosen


@pytest.mark.parametrize("typed", ["5", "a b", "0 nan", "inf ..", "1e300 ..", "1 2 3", "1 .. 2 3", ".. ..", "0,5 1"])
def test_what_is_no_range_is_refused_with_the_forms_there_are(typed: str) -> None:
    with pytest.raises(ValueError, match='must be "low high", half-open as'):
        typed_range(typed)


@pytest.mark.parametrize("typed", ["5 5", "5 1", "1e12 1000000000000.1"])
def test_range_must_rise(typed: str) -> None:
    with pytest.raises(ValueError, match="the first number must be below the second, got"):
        typed_range(typed)


def test_metrics_of_like_values_share_a_scale_and_others_have_their_own() -> None:
    xs = np.arange(50.0)
    one, like = plain_curve(xs, xs, metric="one"), plain_curve(xs, xs * 2, metric="like")
    tiny, other = plain_curve(xs, xs / 1000, metric="tiny"), plain_curve(xs, xs * 3, metric="one")
    assert not sample(figure(one, like), 40, True).has_own_scales
    apart = sample(figure(one, tiny, other), 40, True)
    assert apart.has_own_scales
    assert apart.scales["one"].top >= 3 * 49  # curves of one metric always share


def test_curves_are_distinguished_without_color() -> None:
    xs = np.arange(200.0)
    flat = [plain_curve(xs, np.full(200, at * 10.0), label=str(at), metric="m") for at in range(1, 4)]
    shapes = {
        tuple((ord(char) - BRAILLE).bit_count() if is_dot(char) else 0 for char in row[GUTTER : GUTTER + 24])
        for row in text_of(draw(figure(*flat), 60, 16, ChartStyle(UNICODE, False)))
        if any(is_dot(char) for char in row)
    }
    assert len(shapes) == 3
    signs = {
        char for row in text_of(draw(figure(*flat), 60, 16, ChartStyle(ASCII, False)))[:-1] for char in row[GUTTER:]
    }
    assert set("*+o123") <= signs


def test_each_of_several_curves_ends_in_its_label() -> None:
    xs = np.arange(100.0)
    curves = [
        plain_curve(xs[: 60 + 10 * at], xs[: 60 + 10 * at] * 0 + 5, label=str(at), metric="m") for at in (1, 2, 3)
    ]
    row = next(row for row in text_of(draw(figure(*curves), 70, 10, ChartStyle(UNICODE))) if "1" in row[GUTTER:])
    assert row.index("1") < row.index("2") < row.index("3")


def test_labels_of_curves_that_end_at_one_place_stand_side_by_side() -> None:
    xs = np.arange(100.0)
    curves = [plain_curve(xs, xs, label=str(at), metric="m") for at in (1, 2, 3)]
    text = "".join(text_of(draw(figure(*curves), 70, 10, ChartStyle(UNICODE)))[:-1])
    assert all(text.count(sign) >= 1 for sign in "123")


def test_front_curve_has_the_color_where_two_cross() -> None:
    xs = np.arange(100.0)
    up = plain_curve(xs, xs, tone="series-1", metric="m")
    down = plain_curve(xs, 100 - xs, tone="series-2", metric="m")
    for front, back in ((up, down), (down, up)):
        tones = [span.tone for row in draw(figure(front, back), 70, 11, ChartStyle(UNICODE))[5:6] for span in row]
        assert front.tone in tones


def test_crosshair_reads_the_values_of_its_cell() -> None:
    ys = np.zeros(1000)
    ys[500], ys[503] = 9.0, -4.0
    drawn = figure(plain_curve(np.arange(1000.0), ys))
    (point,) = crosshair_points(drawn, 502.0, 100)
    assert (point.low, point.high) == (-4.0, 9.0)
    assert point.mean == pytest.approx(0.5)
    assert point.x == 502.0


def test_crosshair_reads_the_nearest_value_where_points_are_few() -> None:
    (point,) = crosshair_points(figure(plain_curve(np.array([0.0, 100.0]), np.array([1.0, 2.0]))), 61.0, 1000)
    assert (point.x, point.mean) == (100.0, 2.0)


def test_crosshair_reads_nothing_off_a_curve_that_ended_before_or_is_not_finite() -> None:
    short, broken = plain_curve(np.arange(10.0), np.ones(10)), plain_curve(np.arange(100.0), np.full(100, np.nan))
    assert crosshair_points(figure(short, broken), 80.0, 100) == []


def noisy(number: int, **more: object) -> Figure:
    """So many curves of one metric, each with noise of its own."""
    chance = np.random.default_rng(1)
    xs = np.arange(1000.0)
    return figure(*(
        plain_curve(xs, 100 * at + chance.normal(0, 20, 1000), name=f"Behavior{at}", label="123456789abc"[at - 1],
                    tone="series-2", metric="m")
        for at in range(1, number + 1)
    ), crosshair=640.0, **more)  # fmt: skip


@pytest.mark.parametrize("num_curves", [2, 3, 5, 6])
def test_crosshair_reads_every_curve_as_it_is_drawn_in_80_columns(num_curves: int) -> None:
    drawn = noisy(num_curves, smoothing=0.9)
    words = cross_words(drawn, 640.0, 78, 70)
    text = "".join(span.text for span in words)
    assert cells(words) <= 78
    assert "smoothed 0.9" in text
    for at, each in enumerate(sample(drawn, 1000, False).curves):
        assert each.line is not None
        found = re.search(rf"  {at + 1} (?:Beh\S* )?([\d.]+)", text)
        assert found, text
        assert float(found[1]) == pytest.approx(each.line[640], abs=1)
        assert any(span.tone == "series-2" and span.text.startswith(f"{at + 1} ") for span in words)
    assert [float(part.split()[1]) for part in copied(drawn, 640.0, 70).split(", ")] == pytest.approx(
        [point.line for point in crosshair_points(drawn, 640.0, 70)]
    )


def test_crosshair_leaves_out_first_what_is_least_wanted() -> None:
    drawn = noisy(2)
    seen = ["".join(span.text for span in cross_words(drawn, 640.0, width, 70)) for width in (90, 60, 36, 24)]
    assert [text.count(" to ") for text in seen] == [2, 0, 0, 0]
    assert [text.count("Behavior") for text in seen] == [2, 2, 0, 0]
    assert [bool(re.search(r" 2 ", text)) for text in seen] == [True, True, True, True]
    crowd = "".join(span.text for span in cross_words(noisy(12), 640.0, 78, 70))
    assert re.search(r"  6 \d+\.\d  .*\+\d$", crowd)


def test_crosshair_of_one_curve_reads_its_value_and_the_smoothed_one() -> None:
    text = "".join(span.text for span in cross_words(noisy(1, smoothing=0.6), 640.0, 78, 70))
    assert re.fullmatch(r" 640  [\d.]+ \([\d.]+ to [\d.]+\)  smoothed [\d.]+", text)


def test_crosshair_stands_where_it_is_pointed() -> None:
    curve = plain_curve(np.arange(101.0), np.zeros(101))
    for column in (0, 13, 51):
        shown = (0.0, 52.0)
        chart = text_of(draw(figure(curve, shown=shown, crosshair=column + 0.5), 52 + GUTTER, 6, ChartStyle(UNICODE)))
        assert all(row[GUTTER + column] in "│" or is_dot(row[GUTTER + column]) for row in chart[:-1])
        assert chart[-1][GUTTER + column] == ("┤" if column else "0"), "a label stays readable"


def test_bar_shows_only_zero_to_one() -> None:
    filled_cells = [bar(share, 10, ASCII, "accent")[0].text.count("#") for share in (-1.0, 0.5, 2.0, float("nan"))]
    assert filled_cells == [0, 5, 10, 0]


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_without_color_every_band_has_a_texture_of_its_own(glyphs: Glyphs) -> None:
    xs = np.linspace(0.0, 100.0, 400)
    style = ChartStyle(glyphs, has_color=False)

    def rows(heights: Sequence[float]) -> list[str]:
        curves = [plain_curve(xs, np.full(400, y)) for y in heights]
        bands = [replace(each, low=each.mean - 9, high=each.mean + 9, is_band=True) for each in curves]
        return text_of(draw(figure(*bands), 80, 30, style))

    drawn = rows([30.0 * at for at in range(5)])
    textures = {drawn[row][20:40] for row in (25, 19, 15, 9, 3)}  # of each band a row without its line
    assert len(textures) == 5, drawn
    samples = [line_sample(at, 0, style, is_band=True) for at in range(5)]
    assert len(set(samples)) == 5
    over = "".join(rows([0.0, 0.0]))
    if glyphs is ASCII:  # both show where they lie over each other
        assert ".:.:" in over or ":.:." in over
    else:
        assert "\u2867\u2821" in over  # bars through sparse dots
