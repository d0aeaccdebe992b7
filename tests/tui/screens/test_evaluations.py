"""What was measured apart from training stands beside it: in the table, the charts, the page and comparisons."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_tui.engine.session.behavior_view import EVALUATION, RETURN
from rl_tui.engine.session.messages import BehaviorRolledBack, EvaluationReported
from rl_tui.tui.charts.around_plot import GUTTER
from rl_tui.tui.charts.compared_figure import Compared, Member, compared_figure
from rl_tui.tui.charts.curve import Curve, plain_curve
from rl_tui.tui.charts.drawing import ChartStyle, draw
from rl_tui.tui.charts.figure import crosshair_points, sample, smoothed_at
from rl_tui.tui.charts.metrics import grid_metrics, metric_order, metric_title
from rl_tui.tui.charts.plotext_figure import plotext_text
from rl_tui.tui.charts.run_figure import run_figure
from rl_tui.tui.charts.state import ChartState
from rl_tui.tui.drawing.glyphs import ASCII, UNICODE
from tests.tui import scenes
from tests.tui.charts.test_charts import anything, figure, styles, text_of
from tests.tui.driver import Driven
from tests.tui.screens.test_detail import read_all
from tests.tui.snapshots import check

SIZES = {"80x24": (80, 24), "120x40": (120, 40), "200x60": (200, 60)}


def pointed(ys: np.ndarray, **more: object) -> Curve:
    """A curve of few values, 100 steps apart."""
    return replace(plain_curve(np.arange(len(ys), dtype=np.float64) * 100, ys), has_points=True, **more)


@pytest.mark.parametrize("size", SIZES)
async def test_evaluated_behavior_looks_as_it_was_designed(size: str) -> None:
    async with Driven(scenes.soft().view(), SIZES[size]) as screen:
        check(f"soft-{size}", await screen.press("2"))


def test_each_point_has_its_sign_at_its_place() -> None:
    chart = text_of(draw(figure(pointed(np.array([0.0, 1.0, 0.5]))), GUTTER + 41, 12, ChartStyle(UNICODE)))
    marked = [(row.index("■") - GUTTER, y) for y, row in enumerate(chart) if "■" in row]
    assert sum(row.count("■") for row in chart) == 3
    (peak, top), *_ = marked
    assert 19 <= peak <= 21
    assert top == 0
    assert text_of(draw(figure(pointed(np.array([0.0, 1.0]))), 60, 12, ChartStyle(ASCII)))[0].rstrip().endswith("E")


def test_points_that_would_hide_their_line_have_no_signs() -> None:
    ys = np.arange(40, dtype=np.float64)
    assert "■" in "".join(text_of(draw(figure(pointed(ys)), GUTTER + 120, 12, ChartStyle(UNICODE))))
    assert "■" not in "".join(text_of(draw(figure(pointed(ys)), GUTTER + 119, 12, ChartStyle(UNICODE))))


def test_points_are_not_smoothed_and_leave_the_other_curve_its_spread() -> None:
    noisy = plain_curve(np.arange(300.0), np.tile([0.0, 10.0], 150))
    shown = figure(noisy, pointed(np.array([2.0, 8.0, 3.0])), smoothing=0.9)
    alone, measured = sample(shown, 200, shows_spread=True).curves
    assert alone.limits == (0.0, 10.0)
    assert alone.line is not None
    assert (measured.line, measured.limits) == (None, (2.0, 8.0))
    assert smoothed_at(shown, shown.curves[1], 100.0) is None
    tones = {span.tone for row in draw(shown, 80, 14, ChartStyle(UNICODE)) for span in row}
    assert {"faint", "series-1"} <= tones


@settings(max_examples=60, deadline=None)
@given(anything, anything, styles, st.floats(0, 9000), st.floats(1e-3, 9000), st.sampled_from([0.0, 0.9]))
def test_any_points_fit_any_window(
    ys: np.ndarray, others: np.ndarray, style: ChartStyle, start: float, length: float, smoothing: float
) -> None:
    curves = plain_curve(np.arange(len(others), dtype=np.float64) * 100, others), pointed(ys)
    shown = figure(*curves, shown=(start, start + length), smoothing=smoothing)
    assert all(sum(len(span.text) for span in row) == 60 for row in draw(shown, 60, 12, style))
    text = plotext_text(shown, "title", "y", 40, 10, style.glyphs)
    assert all(len(row) <= 40 for row in text.split("\n"))


def test_evaluations_stand_beside_the_return_of_one_behavior_on_its_scale() -> None:
    view, state = scenes.soft().view(), ChartState()
    shown = run_figure(view, 1, state, UNICODE)
    assert shown is not None
    trained, measured = shown.curves
    assert (trained.name, trained.metric, trained.has_points) == ("Return", RETURN, False)
    assert (measured.name, measured.metric, measured.label) == ("Evaluation", RETURN, "■")
    assert measured.tone != trained.tone
    assert measured.dash != trained.dash
    assert [point.curve.name for point in crosshair_points(shown, 70_000.0, 60)] == ["Return", "Evaluation"]
    for others in (ChartState(has_all_behaviors=True), ChartState(metrics=["Policy/Entropy"])):
        other = run_figure(view, 1, others, UNICODE)
        assert other is not None
        assert not any(curve.has_points for curve in other.curves)
    assert not any(curve.has_points for curve in run_figure(view, 0, state, UNICODE).curves)  # type: ignore[union-attr]


def test_evaluation_is_a_metric_with_a_name_of_its_own() -> None:
    histories = scenes.soft().view().behaviors["Pendulum"].histories
    assert metric_order(histories)[:3] == [RETURN, EVALUATION, "Environment/Episode Length"]
    assert metric_title(EVALUATION) == "Evaluation"
    assert metric_title("Evaluation/Episode Length") == "Evaluation Episode Length"
    assert EVALUATION not in grid_metrics(histories, (), [RETURN]), "it is in the large chart"
    both = run_figure(scenes.soft().view(), 1, ChartState(metrics=[RETURN, EVALUATION]), UNICODE)
    assert both is not None
    assert [(curve.label, curve.has_points) for curve in both.curves] == [("1", False), ("2", True)]


def test_runs_are_compared_by_their_evaluations() -> None:
    behavior = scenes.soft().view().behaviors["Pendulum"]
    shown = [
        Compared(number, f"run {number}", (Member(f"run {number}", behavior, scenes.START),)) for number in range(2)
    ]
    compared = compared_figure(shown, ChartState(metrics=[EVALUATION]))
    assert compared is not None
    assert [(curve.label, curve.has_points, len(curve.xs)) for curve in compared.curves] == [
        ("1", True, 5),
        ("2", True, 5),
    ]


async def test_newest_and_best_evaluation_are_reported() -> None:
    async with Driven(scenes.soft().view()) as screen:
        text = await screen.press("2")
        assert "■ eval -204.4 sd 61.25 at 80k" in text
        assert " eval" in text.splitlines()[2], "a column of the table"
        await screen.press("enter")
        text = await read_all(screen)
        assert "evaluation -204.4 sd 61.25 at 80k" in text
        assert "best eval. -148.9 sd 61.25 at 64k" in text


async def test_evaluation_that_is_the_best_has_its_sign_and_fits_a_narrow_page() -> None:
    async with Driven(scenes.soft().view(), (120, 40)) as screen:
        await screen.press("2")
        text = await screen.publish(EvaluationReported("Pendulum", 84_000, -120.5, 303.3, 10, 200.0, 1.0))
        assert "evaluation   -120.5  sd 303.3 at 84k ★ " in text
        assert "best eval." not in text


async def test_new_evaluation_shows_at_once_and_a_roll_back_goes_back_to_the_one_before() -> None:
    async with Driven(scenes.soft().view()) as screen:
        await screen.press("2")
        text = await screen.publish(EvaluationReported("Pendulum", 84_000, -120.5, 3.5, 10, 200.0, 1.0))
        assert "■ eval -120.5 sd 3.500 at 84k" in text
        text = await screen.publish(BehaviorRolledBack("Pendulum", 64_000, 84_000, "x"))
        assert "■ eval -148.9 sd 61.25 at 64k" in text


async def test_crosshair_reads_both_and_copies_both() -> None:
    async with Driven(scenes.soft().view(), (120, 40)) as screen:
        text = await screen.press("2", "x")
        assert "Return -158.4" in text
        assert "■ Evaluation -204.4" in text
        await screen.press("y")
        assert screen.clipboard.startswith("Return -158.4")
        assert ", Evaluation -204.4" in screen.clipboard


async def test_whole_screen_chart_has_both(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Driven(scenes.soft().view(), (100, 30)) as screen:
        await screen.press("2", "f")
        text = await screen.until("steps")
        text = await screen.until(lambda text: "drawing" not in text)
        assert text.count("■") == 6, "five points and what they mean"


async def test_evaluations_that_are_no_numbers_break_nothing() -> None:
    story = scenes.healthy(1)
    for step, value in ((10_000, float("nan")), (20_000, float("inf")), (30_000, -1e308)):
        story.publish(EvaluationReported("Walker", step, value, value, 3, value, 0.1))
    async with Driven(story.view()) as screen:
        assert "eval -1e308 sd -1e308 at 30k" in await screen.text()
        assert "eval" in await screen.press("enter")
