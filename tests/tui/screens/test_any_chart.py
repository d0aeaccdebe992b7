"""Charts of whatever a run may have reported, in any window, at any size: something is always drawn, or said."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from rl_tui.engine.session.behavior_view import EVALUATION, RETURN
from rl_tui.engine.session.history import History
from rl_tui.engine.session.view import Note, RunView
from rl_tui.tui.charts.metrics import USUAL
from rl_tui.tui.charts.run_figure import place_on
from rl_tui.tui.charts.state import X_AXES, ChartState
from rl_tui.tui.charts.y_range import is_range
from rl_tui.tui.drawing.glyphs import ASCII, UNICODE
from rl_tui.tui.drawing.lines import clip
from rl_tui.tui.keys.keymap import Keymap
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.panes.chart import ChartPane, CurvesPane, MetricChart
from rl_tui.tui.panes.full_chart import FullChart
from rl_tui.tui.state.choices import ScreenState
from rl_tui.tui.state.command_status import CommandStatus

START = 1_795_000_000.0
LENGTH = "Environment/Episode Length"


def history(ys: list[float], first: float, by: float, seconds: float) -> History:
    """One of these values, a step and a time apart."""
    published = History()
    for at, value in enumerate(ys):
        published.append(first + at * by, START + at * seconds, value)
    return published


values = st.one_of(
    st.floats(width=64),
    st.floats(-1000, 1000),
    st.sampled_from([0.0, -0.0, 1.0, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324]),
)
several = st.one_of(
    st.lists(values, max_size=30),
    st.builds(lambda value, number: [value] * number, values, st.integers(1, 40)),  # a constant, or nothing but NaN
)
strides = st.sampled_from([0.0, 1.0, 3.0, 1e4, 1e12])  # of steps or seconds from one value to the next
histories = st.builds(history, several, strides, strides, strides)
reports = st.builds(
    lambda returns, others: {RETURN: returns, **others},
    histories,
    st.dictionaries(st.sampled_from([LENGTH, EVALUATION]), histories, max_size=2),
)
states = st.builds(
    ChartState,
    metrics=st.lists(st.sampled_from([RETURN, LENGTH, EVALUATION]), min_size=1, max_size=3, unique=True),
    has_all_behaviors=st.booleans(),
    x_axis=st.sampled_from(X_AXES),
    smoothing=st.sampled_from([0.0, 0.6, 0.999]),
    is_log=st.booleans(),
    clips_outliers=st.booleans(),
    y_ranges=st.dictionaries(
        st.sampled_from([RETURN, LENGTH]),
        st.tuples(st.none() | st.floats(-1e299, 1e299), st.none() | st.floats(-1e299, 1e299)).filter(is_range),
        max_size=2,
    ),
)
keys = st.lists(st.sampled_from("++++-[]0exlrt"), max_size=12)


def frame_of(behaviors: list[dict[str, History]], *, is_ascii: bool = False) -> Frame:
    """A run that has reported these."""
    view = RunView(started_at=START, now=START + 100, state="training")
    for at, each in enumerate(behaviors):
        behavior = view.behavior(f"Walker{at}")
        behavior.histories.update(each)
    view.notes.append(Note(START + 1, "look here", None, {}))
    glyphs = ASCII if is_ascii else UNICODE
    return Frame(view, ScreenState(), CommandStatus(), Keymap(), START + 100, glyphs)


def press(key: str, frame: Frame, pane: ChartPane) -> None:
    """What the screens do at that key."""
    state, figure = frame.state.chart, pane.figure(frame)
    match key:
        case "t":
            state.next_x_axis(lambda x, axis: place_on(frame.view, frame.selected, x, state.x_axis, axis))
        case "0":
            state.show_all()
        case "e":
            state.follow()
    if figure is None:
        return
    match key:
        case "+" | "-":
            state.zoom(2.0 if key == "+" else 0.5, figure.viewport)
        case "[" | "]":
            state.pan(-1 if key == "[" else 1, figure.viewport)
        case "x":
            state.toggle_crosshair(figure.viewport)
        case "l" | "r":
            state.slide(-1 if key == "l" else 1, figure.viewport, 80)


def drawn(pane: ChartPane, frame: Frame, width: int, height: int) -> str:
    """What the pane shows."""
    lines = pane.lines(frame, width, height)[:height]
    return "\n".join("".join(span.text for span in clip(line, width)) for line in lines)


@settings(max_examples=60, deadline=None)
@given(st.lists(reports, min_size=1, max_size=4), st.integers(0, 4), states, keys, st.integers(1, 140),
       st.integers(1, 45), st.booleans())  # fmt: skip
def test_whatever_was_reported_and_pressed_every_chart_is_drawn(
    behaviors: list[dict[str, History]],
    selected: int,
    state: ChartState,
    pressed: list[str],
    width: int,
    height: int,
    is_ascii: bool,
) -> None:
    frame = frame_of(behaviors, is_ascii=is_ascii)
    frame.state.selected, frame.state.chart = selected, replace(state)
    panes = [CurvesPane(), MetricChart(0, USUAL[0]), FullChart()]
    for key in pressed:
        press(key, frame, panes[0])
    for pane in panes:
        assert drawn(pane, frame, width, height).strip() or width < 8
