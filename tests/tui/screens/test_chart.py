"""The chart on the whole screen."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rl_tui.engine.session.messages import EpisodesFinished
from rl_tui.tui.app import TrainerApp
from rl_tui.tui.charts.curve import plain_curve
from rl_tui.tui.charts.drawing import ChartStyle
from rl_tui.tui.charts.figure import Figure, Mark
from rl_tui.tui.charts.plotext_figure import SMALLEST, plotext_chart
from rl_tui.tui.charts.window import Viewport
from rl_tui.tui.drawing.glyphs import ASCII, UNICODE
from rl_tui.tui.drawing.lines import Line, Span, cells
from rl_tui.tui.screens.chart import PlotextPane
from tests.fakes import FakeSession
from tests.tui import scenes
from tests.tui.driver import Driven
from tests.tui.snapshots import settled_text

styles = st.builds(ChartStyle, st.sampled_from([UNICODE, ASCII]), st.booleans())
anything = arrays.arrays(np.float64, st.integers(1, 80), elements=st.floats(width=64))


def text_of(lines: list[Line]) -> str:
    return "\n".join("".join(span.text for span in row) for row in lines)


@settings(max_examples=40, deadline=None)
@given(st.lists(anything, min_size=1, max_size=4), st.integers(SMALLEST[0], 150), st.integers(SMALLEST[1], 50), styles,
       st.sampled_from([0.0, 0.9]), st.booleans())  # fmt: skip
def test_any_values_fill_the_size_exactly(
    values: list[np.ndarray], width: int, height: int, style: ChartStyle, smoothing: float, is_log: bool
) -> None:
    curves = [plain_curve(np.arange(len(ys)) * 10.0, ys, label=str(at), metric=str(at)) for at, ys in enumerate(values)]
    viewport = Viewport((0.0, 800.0), (0.0, 800.0), 790.0)
    figure = Figure(tuple(curves), viewport, smoothing=smoothing, is_log=is_log, crosshair=400.0)
    chart = plotext_chart(figure, "title", "y", width, height, style)
    if chart.lines:
        assert len(chart.lines) == height
        assert {cells(row) for row in chart.lines} == {width}
        assert 0 < chart.first_cell < chart.first_cell + chart.num_cells <= width
    else:
        assert not any(np.isfinite(ys).any() for ys in values)


def a_figure(**more: object) -> Figure:
    xs = np.arange(200.0)
    curve = plain_curve(xs, np.where((xs > 90) & (xs < 110), np.nan, 50 + xs / 4), tone="series-3", metric="m")
    viewport = Viewport((0.0, 200.0), (0.0, 200.0), 199.0)
    return Figure((curve,), viewport, marks=(Mark(40.0, "★", "warning"),), crosshair=150.0, **more)  # type: ignore[arg-type]


def a_chart(figure: Figure) -> list[Line]:
    return plotext_chart(figure, "title", "y", 90, 24, ChartStyle(UNICODE)).lines


def at_cell(row: Line, at: int) -> Span:
    """The character in that cell and its tone."""
    return [Span(char, span.tone) for span in row for char in span.text][at]


def test_colors_come_back_as_tones() -> None:
    chart = plotext_chart(a_figure(), "title", "y", 90, 24, ChartStyle(UNICODE))
    tones = {span.tone: span.text for row in chart.lines for span in row}
    assert any(chr(0x2800) < char <= chr(0x28FF) for char in tones["series-3"])
    assert tones["warning"] == "★"
    assert tones["bad"].strip("✗") == ""
    assert "│" in tones["accent"]
    assert "\x1b" not in text_of(chart.lines)


def test_crosshair_stands_where_it_is_pointed() -> None:
    for share in (0.0, 0.25, 0.5, 1.0):
        figure = Figure(a_figure().curves, a_figure().viewport, crosshair=200.0 * share)
        chart = plotext_chart(figure, "title", "y", 90, 24, ChartStyle(UNICODE))
        row = next(row for row in chart.lines if any(span.tone == "accent" for span in row))
        at = cells(row[: next(i for i, span in enumerate(row) if span.tone == "accent")])
        assert at == pytest.approx(chart.first_cell + share * (chart.num_cells - 1), abs=1)


def test_gap_is_left_open() -> None:
    for smoothing in (0.0, 0.6):
        chart = plotext_chart(a_figure(smoothing=smoothing), "title", "y", 90, 24, ChartStyle(ASCII))
        middle = chart.first_cell + chart.num_cells // 2
        rows = text_of(chart.lines[2:-3]).splitlines()
        assert all(row[middle] in " x" for row in rows)


@pytest.mark.parametrize("style", [ChartStyle(UNICODE), ChartStyle(ASCII)])
def test_a_spike_stands_faint_behind_the_smoothed_line_and_neither_hides_the_other(style: ChartStyle) -> None:
    ys = np.zeros(100_000)
    ys[50_000], ys[70_000] = 9.0, -9.0
    curve = plain_curve(np.arange(100_000.0), ys, tone="series-3", metric="m")
    viewport = Viewport((0.0, 100_000.0), (0.0, 100_000.0), 99_999.0)
    chart = plotext_chart(Figure((curve,), viewport, smoothing=0.9), "title", "y", 90, 23, style)
    for share, rows in ((0.5, range(3, 10)), (0.7, range(13, 19))):
        middle = chart.first_cell + int(share * chart.num_cells)
        assert all(at_cell(chart.lines[row], middle).text != " " for row in rows)
        assert {at_cell(chart.lines[row], middle).tone for row in rows} <= {"faint", "series-3"}
        assert at_cell(chart.lines[rows[0]], middle).tone == "faint"
    bright = sum(len(span.text) for row in chart.lines[2:-3] for span in row if span.tone == "series-3")
    assert bright >= chart.num_cells - 1, "the line goes on through the spikes"


def test_several_curves_have_no_values_behind_them() -> None:
    curves = tuple(plain_curve(np.arange(100.0), np.arange(100.0) % 7 * at, metric="m", label=str(at)) for at in (1, 2))
    chart = plotext_chart(Figure(curves, a_figure().viewport, smoothing=0.9), "title", "y", 90, 23, ChartStyle(UNICODE))
    assert "faint" not in {span.tone for row in chart.lines for span in row}


def test_marks_stand_on_the_frame_and_leave_curve_and_numbers_readable() -> None:
    happened = tuple(Mark(x, "★", "warning") for x in (0.0, 50.0, 100.0, 199.9))
    level = plain_curve(np.arange(200.0), np.zeros(200), tone="series-3", metric="m")
    figure = Figure((level,), a_figure().viewport, marks=happened)
    *_, frame, numbers, _ = text_of(plotext_chart(figure, "title", "y", 90, 24, ChartStyle(UNICODE)).lines).splitlines()
    assert frame.count("★") == 4
    assert numbers.split() == ["0", "50", "100", "150", "200"]


def test_what_goes_on_beyond_the_axis_is_pointed_at_on_the_full_chart_too() -> None:
    figure = Figure(a_figure().curves, a_figure().viewport, y_ranges={"m": (60.0, 80.0)})
    *_, highest, lowest = (row for row in text_of(a_chart(figure)).splitlines() if "▲" in row or "▼" in row)
    assert "▲" in highest
    assert "▼" in lowest


def test_ascii_chart_is_ascii() -> None:
    chart = plotext_chart(a_figure(), "title", "y", 90, 24, ChartStyle(ASCII, False))
    assert text_of(chart.lines).replace("★", "*").isascii()


def test_chart_has_title_and_labels_of_its_axes() -> None:
    text = text_of(plotext_chart(a_figure(), "Return of Walker", "Return", 90, 24, ChartStyle(UNICODE)).lines)
    assert "Return of Walker" in text.splitlines()[0]
    assert text.splitlines()[-1].split() == ["Return", "steps"]


def test_plotext_is_not_imported_before_the_chart_is_opened() -> None:
    script = "import sys, rl_tui.tui.app, rl_tui.tui.screens.overview; sys.exit('plotext' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], env=os.environ, check=False).returncode == 0


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_f_opens_the_chart_with_what_was_chosen_and_f_goes_back(size: tuple[int, int]) -> None:
    view = scenes.healthy(3).view()
    app = TrainerApp(FakeSession(), view, clock=lambda: view.now + 2)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()  # + zooms in on what is drawn
        await pilot.press("b", "plus", "f")
        await app.workers.wait_for_complete()
        text = await settled_text(pilot)
        assert "Return · 3 behaviors · by steps · smooth 0.6 · last 90k" in text
        assert all(f"{at} {name}" in text for at, name in ((1, "Walker"), (2, "Crawler"), (3, "Hopper")))
        assert text.count("steps") >= 2
        await pilot.press("m", "s")
        assert "Episode Length · 3 behaviors · by steps · smooth 0.9" in await settled_text(pilot)
        await pilot.press("f")
        assert app.screen is app.overview
        assert "Episode Length · 3 behaviors" in await settled_text(pilot)


async def test_every_key_changes_the_chart() -> None:
    view = scenes.healthy(2).view()
    app = TrainerApp(FakeSession(), view, clock=lambda: view.now + 2)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("f")
        await app.workers.wait_for_complete()
        old = await settled_text(pilot)
        for key in ("m", "b", "plus", "left", "shift+left", "end", "0", "x", "left", "s", "L", "t", "M"):
            await pilot.press(key)
            new = await settled_text(pilot)
            assert new != old, key
            old = new


async def test_click_sets_the_crosshair_below_the_pointer() -> None:
    view = scenes.healthy(1).view()
    app = TrainerApp(FakeSession(), view, clock=lambda: view.now + 2)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("f")
        await app.workers.wait_for_complete()
        await settled_text(pilot)
        pane = app.screen.query_one(PlotextPane)
        await pilot.click(pane, offset=(40, 12))
        rows = (await settled_text(pilot)).splitlines()
        region = pane.region
        assert rows[region.y + 6][region.x + 40] == "│"


async def test_behavior_that_is_far_behind_in_steps_leaves_the_window_to_the_others() -> None:
    story = scenes.Story()
    story.begin("Walker", "Late")
    story.train("Walker", reports=60, last_step=160_000, reward_to=400.0)
    story.train("Late", reports=3, last_step=3_000, reward_to=50.0)
    async with Driven(story.view(), (100, 30), opened="chart") as driven:
        await driven.app.workers.wait_for_complete()
        text = await driven.press("b", "+", "+")
    assert "2 behaviors" in text
    assert "2 Late" in text
    assert any(chr(0x2800) < char <= chr(0x28FF) for char in text)


async def test_behavior_without_one_finite_value_leaves_the_chart_to_the_others() -> None:
    story = scenes.Story()
    story.begin("Walker", "Broken")
    story.train("Walker", reports=60, last_step=160_000, reward_to=400.0)
    story.publish(EpisodesFinished("Broken", 50_000, 1, float("nan"), float("nan"), float("nan"), 10.0))
    async with Driven(story.view(), (100, 30), opened="chart") as driven:
        await driven.app.workers.wait_for_complete()
        text = await driven.press("b")
    assert "2 Broken" in text
    assert "✗" in text


@pytest.mark.parametrize("size", [(40, 10), (60, 12), (40, 14)])
async def test_curve_is_drawn_where_there_is_no_room_for_a_frame_around_it(size: tuple[int, int]) -> None:
    async with Driven(scenes.healthy(1).view(), size, opened="chart") as driven:
        await driven.app.workers.wait_for_complete()
        text = await driven.text()
    assert "too small" not in text
    assert sum(chr(0x2800) < char <= chr(0x28FF) for char in text) > 10


async def test_chart_of_a_run_that_starts_says_what_it_waits_for() -> None:
    view = scenes.warming_up().view()
    app = TrainerApp(FakeSession(), view, clock=lambda: view.now + 2)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("f")
        assert "waiting for the first episode" in await settled_text(pilot)


async def test_figure_is_drawn_again_only_when_something_changed() -> None:
    view, session = scenes.healthy(1).view(), FakeSession()
    app = TrainerApp(session, view, clock=lambda: view.now + 2)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("f")
        await app.workers.wait_for_complete()
        await settled_text(pilot)
        pane = app.screen.query_one(PlotextPane)
        first = pane._chart
        view.now += 10
        app.tick()
        app.tick()
        assert pane._chart is first
        session.bus.publish(EpisodesFinished("Walker", 161_000, 1, 900.0, 1.0, 2.0, 500.0))
        view.now += 10
        app.tick()  # the panes of the usual pace go first
        app.tick()
        assert pane._chart is not first
