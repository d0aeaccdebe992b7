"""The figures above a curve are those of the curve that is drawn."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from rl_tui.engine.session.behavior_view import RETURN
from rl_tui.engine.session.messages import EpisodesFinished
from rl_tui.tui.charts.curve import Curve, plain_curve
from rl_tui.tui.charts.figure import sample
from rl_tui.tui.charts.headline import headline
from rl_tui.tui.charts.run_figure import run_figure
from rl_tui.tui.charts.state import ChartState
from rl_tui.tui.drawing.glyphs import UNICODE
from rl_tui.tui.drawing.lines import Line
from rl_tui.tui.keys.keymap import Keymap
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.panes.chart_words import chart_words
from rl_tui.tui.panes.comparison import ComparisonChart, ComparisonLegend
from rl_tui.tui.runs.comparing import Comparison, RunChoice
from rl_tui.tui.state.choices import ScreenState
from rl_tui.tui.state.command_status import CommandStatus
from tests.tui import scenes
from tests.tui.charts.test_charts import figure


def steep() -> Curve:
    """A return that was bad for long and is 500 now."""
    return plain_curve(np.arange(50.0), np.concatenate((np.full(40, 20.0), np.full(10, 500.0))), metric=RETURN)


@pytest.mark.parametrize("smoothing", [0.0, 0.6, 0.9])
def test_last_and_highest_are_those_of_the_line_that_is_drawn(smoothing: float) -> None:
    shown = figure(steep(), smoothing=smoothing)
    found, drawn = headline(shown, shown.curves[0]), sample(shown, 50, shows_spread=False).curves[0]
    assert found is not None
    assert found.last == found.highest
    assert (found.lowest, found.highest) == pytest.approx(drawn.limits, rel=0.01)
    assert (found.last == 500.0) == (smoothing == 0.0)


def test_only_what_is_in_sight_counts() -> None:
    shown = figure(steep(), shown=(0.0, 30.0))
    assert headline(shown, shown.curves[0]) == (20.0, 20.0, 20.0, 0.0)
    outside = figure(steep(), shown=(100.0, 120.0))
    assert headline(outside, outside.curves[0]) is None


def test_values_that_are_no_numbers_are_no_highest() -> None:
    shown = figure(plain_curve(np.arange(4.0), np.array([1.0, math.inf, 3.0, math.nan])))
    found = headline(shown, shown.curves[0])
    assert found is not None
    assert (found.lowest, found.highest) == (1.0, 3.0)
    assert math.isnan(found.last), "the newest value is none: it is said, not hidden"
    assert headline(figure(plain_curve(np.arange(2.0), np.full(2, math.nan))), steep()) is not None


def story() -> scenes.Story:
    """Its last episodes returned 500 each; the mean of the last hundred is much less."""
    published = scenes.Story()
    published.begin("Walker")
    for step in range(1, 31):
        value = 20.0 if step <= 26 else 500.0
        published.publish(EpisodesFinished("Walker", 1000 * step, 4, value, value, value, 10.0), after=1)
    return published


def text_of(row: Line) -> str:
    return "".join(span.text for span in row)


def words_of(smoothing: float) -> tuple[str, str]:
    """What stands above the curve on the overview, and in the comparison's legend."""
    view, state = story().view(), ScreenState()
    state.chart.smoothing = smoothing
    frame = Frame(view, state, CommandStatus(), Keymap(), view.now, UNICODE)
    shown = run_figure(view, 0, state.chart, UNICODE)
    assert shown is not None
    above = text_of(chart_words(frame, shown, sample(shown, 200, shows_spread=True), 120))
    comparison = Comparison([RunChoice("walker-ppo", ("walker-ppo",))], "walker-ppo")
    legend = ComparisonLegend(comparison, ComparisonChart(comparison, ChartState([RETURN], smoothing=smoothing)))
    return above, legend.heading(frame) + text_of(legend.lines(frame, 120, 10)[1])


@pytest.mark.parametrize(("smoothing", "kind"), [(0.0, "raw"), (0.6, "smoothed")])
def test_a_curve_and_the_figures_above_it_agree_here_and_in_a_comparison(smoothing: float, kind: str) -> None:
    above, compared = words_of(smoothing)
    found = re.search(rf" {kind}: last ([0-9.]+)  highest ([0-9.]+)  mean of 100 episodes 96\.8", above)
    assert found is not None, above
    assert (float(found[1]) == 500.0) == (smoothing == 0.0)
    assert found[1] == found[2]
    how = f"{kind} {smoothing}" if smoothing else kind
    assert compared.startswith(f"Return {how} ")
    assert re.search(rf" 0 +{re.escape(found[1])} +\S+ +{re.escape(found[2])}", compared), compared


@pytest.mark.parametrize("width", [33, 38, 72])
def test_nothing_clipped_takes_no_room_from_the_figures(width: int) -> None:
    above = {}
    for clips in (False, True):
        view, state = story().view(), ScreenState()
        state.chart.clips_outliers = clips
        frame = Frame(view, state, CommandStatus(), Keymap(), view.now, UNICODE)
        shown = run_figure(view, 0, state.chart, UNICODE)
        assert shown is not None
        above[clips] = text_of(chart_words(frame, shown, sample(shown, width, shows_spread=True), width))
    assert above[True].replace("all visible", "").rstrip() == above[False].rstrip()
    assert above[True].startswith(" smoothed: last ")
