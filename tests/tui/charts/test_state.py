"""Zooming, panning and choosing: what is in sight stays within what there is."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_tui.tui.charts.curve import XAxis
from rl_tui.tui.charts.state import SMOOTHINGS, ChartState
from rl_tui.tui.charts.window import Viewport, viewport_of

FULL = (0.0, 1000.0)
places = st.floats(-1e12, 1e12)
lengths = st.floats(1e-3, 1e12)
keys = st.lists(st.sampled_from(["+", "-", "[", "]", "end", "0", "x", "left", "right"]), max_size=30)


def viewport(state: ChartState, full: tuple[float, float] = FULL, newest: float = 990.0) -> Viewport:
    return viewport_of(state.window, state.is_live, full, newest)


def press(state: ChartState, key: str, seen: Viewport) -> None:
    match key:
        case "+" | "-":
            state.zoom(2.0 if key == "+" else 0.5, seen)
        case "[" | "]":
            state.pan(-1 if key == "[" else 1, seen)
        case "end":
            state.follow()
        case "0":
            state.show_all()
        case "x":
            state.toggle_crosshair(seen)
        case _:
            state.slide(-1 if key == "left" else 1, seen, 100)


@given(keys, places, lengths, st.floats(0, 1))
def test_whatever_is_pressed_the_window_stays_within_the_axis(
    pressed: list[str], start: float, length: float, share: float
) -> None:
    full, state = (start, start + length), ChartState()
    for key in pressed:
        press(state, key, viewport(state, full, start + share * length))
        shown = viewport(state, full, start + share * length).shown
        slack = 1e-6 * length + 1e-9 * abs(start)
        assert full[0] - slack <= shown[0] < shown[1] <= full[1] + slack
        assert all(math.isfinite(x) for x in shown)


@given(st.floats(0.1, 0.9), st.floats(1.1, 8))
def test_place_that_is_zoomed_into_keeps_its_place(share: float, factor: float) -> None:
    state = ChartState(is_live=False)
    center = 1000 * share
    state.zoom(factor, viewport(state), center)
    start, end = viewport(state).shown
    assert (center - start) / (end - start) == pytest.approx(share, abs=1e-6)
    assert end - start == pytest.approx(1000 / factor)
    state.zoom(1 / factor, viewport(state), center)
    assert state.window is None


def test_live_window_follows_the_newest_point_in_tenths() -> None:
    state = ChartState()
    state.zoom(4, viewport(state))
    ends = {
        viewport_of(state.window, state.is_live, (0.0, 2000.0), float(newest)).shown[1] for newest in range(500, 1500)
    }
    assert 20 <= len(ends) <= 60
    start, end = viewport_of(state.window, state.is_live, (0.0, 2000.0), 1234.0).shown
    assert end - start == 250.0
    assert 1234.0 <= end <= 1234.0 + 50


def test_live_window_ends_where_the_axis_does() -> None:
    assert viewport_of((0.0, 330.0), True, (0.0, 1000.0), 995.0).shown == (670.0, 1000.0)
    assert viewport_of((900.0, 1230.0), False, (0.0, 1000.0), 995.0).shown == (670.0, 1000.0)


def test_panning_back_lets_go_of_the_newest_point_and_end_takes_it_up_again() -> None:
    state = ChartState()
    state.zoom(4, viewport(state))
    state.pan(-1, viewport(state))
    assert not state.is_live
    assert viewport(state).shown[1] < 990
    state.follow()
    assert viewport(state).shown[1] >= 990


def test_panning_to_the_right_end_follows_again() -> None:
    state = ChartState(window=(0.0, 250.0), is_live=False)
    for _ in range(20):
        state.pan(1, viewport(state))
    assert state.is_live


def test_whole_axis_cannot_be_moved() -> None:
    state = ChartState()
    state.pan(-1, viewport(state))
    assert (state.window, state.is_live) == (None, True)


def test_crosshair_begins_at_the_newest_point_and_stays_in_sight() -> None:
    state = ChartState()
    state.toggle_crosshair(viewport(state))
    assert state.crosshair == 990.0
    state.slide(1000, viewport(state), 100)
    assert state.crosshair == 1000.0
    state.slide(-3, viewport(state), 100)
    assert state.crosshair == pytest.approx(970.0)
    state.toggle_crosshair(viewport(state))
    assert state.crosshair is None


def test_zoom_goes_around_the_crosshair_while_it_is_in_sight() -> None:
    state = ChartState(crosshair=300.0)
    state.zoom(2, viewport(state))
    assert viewport(state).shown == pytest.approx((150.0, 650.0))
    assert not state.is_live


def test_metrics_come_one_after_the_other_and_begin_again() -> None:
    state = ChartState(["Return"])
    seen = []
    for _ in range(4):
        seen.append(list(state.metrics))
        state.next_metric(["Return", "a", "b"])
    assert seen == [["Return"], ["a"], ["b"], ["Return"]]
    state.metrics = ["gone", "b"]
    state.next_metric(["Return", "a", "b"])
    assert state.metrics == ["Return"]
    state.next_metric([])
    assert state.metrics == ["Return"]


@given(st.floats(0, 0.999))
def test_smoothing_comes_back_to_the_usual_ones(typed: float) -> None:
    state = ChartState(smoothing=typed)
    state.next_smoothing()
    assert state.smoothing in SMOOTHINGS
    assert state.smoothing > typed or state.smoothing == 0


def test_other_axis_shows_the_same_window() -> None:
    factors = {"steps": 1.0, "wall": 10.0, "relative": 10.0}
    state = ChartState(window=(10.0, 20.0), is_live=False, crosshair=12.0)

    def convert(x: float, x_axis: XAxis) -> float:
        return x / factors[state.x_axis] * factors[x_axis]

    for expected in ("wall", "relative"):
        state.next_x_axis(convert)
        assert (state.x_axis, state.window, state.crosshair) == (expected, (100.0, 200.0), 120.0)
    state.next_x_axis(convert)
    assert (state.x_axis, state.window) == ("steps", (10.0, 20.0))


def test_window_that_would_be_empty_on_the_other_axis_is_given_up() -> None:
    state = ChartState(window=(10.0, 20.0), is_live=False)
    state.next_x_axis(lambda x, x_axis: 5.0)
    assert (state.window, state.is_live) == (None, True)
