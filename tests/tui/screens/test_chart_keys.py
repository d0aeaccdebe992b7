"""Every key of the charts, and the mouse on them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual.events import MouseScrollDown, MouseScrollUp
from textual.pilot import Pilot

from rl_tui.engine.session.behavior_view import RETURN
from rl_tui.engine.session.messages import (
    EpisodesFinished,
    HyperparameterChanged,
    LessonChanged,
    MetricsReported,
    NoteAdded,
)
from rl_tui.engine.session.view import RunView
from rl_tui.tui.app import TrainerApp
from rl_tui.tui.charts.around_plot import GUTTER
from rl_tui.tui.charts.metrics import REWARD
from rl_tui.tui.charts.state import ChartState
from rl_tui.tui.drawing.painting import spots
from rl_tui.tui.panes.chart import ChartPane, CurvesPane
from rl_tui.tui.screens.chart_actions import ChartActions
from rl_tui.tui.screens.pick_metrics import PickMetricsScreen, fitting
from tests.fakes import FakeSession
from tests.tui import scenes
from tests.tui.snapshots import settled_text


@asynccontextmanager
async def shown(view: RunView, size: tuple[int, int] = (120, 40)) -> AsyncIterator[tuple[TrainerApp, Pilot[Any]]]:
    app = TrainerApp(FakeSession(view), clock=lambda: view.now + 2)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        app.tick()
        await pilot.pause()
        yield app, pilot


def chart(app: TrainerApp) -> ChartState:
    return app.context.state.chart


def drawn(app: TrainerApp) -> list[str]:
    screen = app.screen
    assert isinstance(screen, ChartActions)
    return screen.drawn


def dots(text: str) -> int:
    return sum("⠀" < char <= "⣿" for char in text)


CHANGING = [
    "m", "M", "b", "plus", "plus minus", "plus 0", "plus left_square_bracket",
    "plus left_square_bracket right_square_bracket", "plus shift+left", "plus shift+left end", "x", "x left",
    "x left right", "plus left", "s", "S", "L", "O", "B", "t", "t t", "f", "x y", "plus equals_sign",
]  # fmt: skip


async def test_every_key_changes_the_picture() -> None:
    async with shown(scenes.healthy(3).view()) as (app, pilot):
        first = await settled_text(pilot)
        for keys in CHANGING:
            *before, last = keys.split()
            await pilot.press(*before)
            old = await settled_text(pilot)
            await pilot.press(last)
            assert await settled_text(pilot) != old, keys
            if app.screen is not app.overview:
                await pilot.press("escape")
            app.context.state.chart = ChartState()
            app.status.notice = None
            app.redraw()
            assert await settled_text(pilot) == first, f"the picture after {keys} is not as it was before"


async def test_m_goes_through_all_metrics_of_the_behavior_and_comes_back() -> None:
    view = scenes.healthy(1).view()
    async with shown(view) as (app, pilot):
        seen = []
        for _ in range(len(view.behaviors["Walker"].histories)):
            seen += drawn(app)
            await pilot.press("m")
        assert seen[:2] == [RETURN, "Environment/Episode Length"]
        assert set(seen) == set(view.behaviors["Walker"].histories) - {REWARD}, "the return under another name"
        assert len(seen) == len(set(seen)) + 1
        assert seen[-1] == RETURN


async def test_metrics_are_picked_by_a_few_letters() -> None:
    async with shown(scenes.healthy(1).view()) as (app, pilot):
        await pilot.press("M", *"entro", "enter")
        assert chart(app).metrics == ["Policy/Entropy"]
        assert "Entropy · Walker" in await settled_text(pilot)


async def test_several_metrics_are_picked_and_drawn_together() -> None:
    async with shown(scenes.healthy(1).view()) as (app, pilot):
        await pilot.press("M", *"length", "space")
        assert "[✓] Environment/Episode Length" in await settled_text(pilot)
        await pilot.press("enter")
        assert chart(app).metrics == [RETURN, "Environment/Episode Length"]
        text = await settled_text(pilot)
        assert "Return + Episode Length · Walker" in text
        assert "1 Return" in text
        assert "2 Episode Length" in text


async def test_metrics_too_different_for_one_axis_say_so() -> None:
    async with shown(scenes.healthy(1).view()) as (app, pilot):
        chart(app).metrics = [RETURN, "Policy/Entropy"]
        app.redraw()
        text = await settled_text(pilot)
        assert "separate scales" in text
        assert "2 Entropy" in text


async def test_picking_can_be_given_up_and_needs_something_that_fits() -> None:
    async with shown(scenes.healthy(1).view()) as (app, pilot):
        await pilot.press("M", "down", "space", "escape")
        assert drawn(app) == [RETURN]
        await pilot.press("M", *"zzzz")
        assert "no metric matches" in await settled_text(pilot)
        await pilot.press("enter")
        assert isinstance(app.screen, PickMetricsScreen)


async def test_picking_says_what_enter_draws_also_where_a_filter_hides_it() -> None:
    async with shown(scenes.healthy(1).view(), (80, 24)) as (app, pilot):
        await pilot.press("M", "down")
        assert "enter draws Episode Length, space adds it to Return" in await settled_text(pilot)
        await pilot.press("space", *"entro", "space")
        text = await settled_text(pilot)
        assert "[✓] Environment/Episode Length" not in text
        assert "enter draws 3: Return, Episode Length, Entropy" in text
        await pilot.press("space", "enter")
        assert chart(app).metrics == [RETURN, "Environment/Episode Length"]


async def test_each_metric_is_offered_once_and_the_return_is_found_by_both_of_its_names() -> None:
    async with shown(scenes.healthy(1).view()) as (app, pilot):
        await pilot.press("M")
        assert (await settled_text(pilot)).count("Environment/Cumulative Reward") == 1
        await pilot.press("down", *"cumulative", "enter")
        assert drawn(app) == [RETURN]


def test_what_was_typed_finds_the_best_metric_first() -> None:
    tags = ["Environment/Episode Length", "Policy/Entropy", "Policy/Learning Rate"]
    assert fitting(tags, "") == tags
    assert fitting(tags, "entropy") == ["Policy/Entropy"]
    assert fitting(tags, "learn")[0] == "Policy/Learning Rate"


async def test_all_behaviors_are_drawn_with_their_numbers() -> None:
    async with shown(scenes.healthy(3).view()) as (app, pilot):
        await pilot.press("b")
        text = await settled_text(pilot)
        assert "Return · 3 behaviors" in text
        assert all(f"{at} {name}" in text for at, name in ((1, "Walker"), (2, "Crawler"), (3, "Hopper")))
        pane = app.screen.query_one(CurvesPane)
        tones = {span.tone for row in pane._lines[1:] for span in row}
        assert {"series-1", "series-2", "series-3"} <= tones


async def test_overlay_of_a_single_behavior_is_refused_in_words() -> None:
    async with shown(scenes.healthy(1).view()) as (app, pilot):
        await pilot.press("b")
        assert "there is only one behavior" in await settled_text(pilot)
        assert not chart(app).has_all_behaviors


async def test_more_curves_than_can_be_distinguished_are_counted() -> None:
    async with shown(scenes.healthy(12).view(), (200, 60)) as (app, pilot):
        chart(app).metrics = [RETURN, "Environment/Cumulative Reward"]
        await pilot.press("b")
        assert "12 of 24 curves" in await settled_text(pilot)


async def test_legend_counts_the_curves_that_it_has_no_room_for() -> None:
    async with shown(scenes.healthy(12).view(), (80, 24)) as (app, pilot):
        await pilot.press("b")
        await settled_text(pilot)
        words = "".join(span.text for span in app.screen.query_one(CurvesPane)._lines[0])
        assert "1 Walker" in words
        num_named = sum(f" {name} " in words for name in app.view.behaviors)
        assert f"+{12 - num_named}" in words


async def test_crosshair_reads_value_spread_and_smoothed_value() -> None:
    async with shown(scenes.healthy(1).view()) as (app, pilot):
        await pilot.press("x", "left")
        text = await settled_text(pilot)
        pane = app.screen.query_one(CurvesPane)
        words = "".join(span.text for span in pane._lines[0])
        assert re.search(r" \(\d.* to \d.*\)  smoothed \d", words)
        assert "│" in text
        await pilot.press("x")
        assert "smoothed: last" in await settled_text(pilot)


async def test_y_copies_the_value_below_the_crosshair() -> None:
    view = scenes.healthy(1).view()
    async with shown(view) as (app, pilot):
        await pilot.press("x", *["plus"] * 9, "y")
        assert float(app.clipboard) == pytest.approx(view.behaviors["Walker"].returns.mean[-1])
        assert "copied" in await settled_text(pilot)
        assert app.screen is app.overview


async def test_y_copies_names_and_values_of_several_curves() -> None:
    async with shown(scenes.healthy(2).view()) as (app, pilot):
        await pilot.press("b", "x", *["left"] * 9, "y")
        first, second = app.clipboard.split(", ")
        assert (first.split()[0], second.split()[0]) == ("Walker", "Crawler")


async def test_esc_takes_the_crosshair_off_the_overview() -> None:
    async with shown(scenes.healthy(1).view()) as (app, pilot):
        before = await settled_text(pilot)
        await pilot.press("x", "escape")
        assert chart(app).crosshair is None
        assert await settled_text(pilot) == before


async def test_y_without_a_crosshair_copies_and_never_opens_a_screen() -> None:
    async with shown(scenes.healthy(1).view()) as (app, pilot):
        await pilot.press("y")
        assert "copied" in await settled_text(pilot)
        assert "Walker" in app.clipboard
        assert app.screen is app.overview


async def test_smoothing_is_typed() -> None:
    async with shown(scenes.healthy(1).view()) as (app, pilot):
        await pilot.press("S", *["backspace"] * 5, *"1.5")
        assert "must be from 0 to 0.999, got 1.5" in await settled_text(pilot)
        await pilot.press("enter")
        assert chart(app).smoothing == 0.6
        await pilot.press(*["backspace"] * 5, *"0.95", "enter")
        assert chart(app).smoothing == 0.95
        assert "smooth 0.95" in await settled_text(pilot)


async def test_what_is_no_smoothing_is_not_taken() -> None:
    async with shown(scenes.healthy(1).view()) as (app, pilot):
        for text in ("", "nan", "inf", "-0.1", "1", "0.9991", "a"):
            await pilot.press("S", *["backspace"] * 5, *text, "enter")
            assert chart(app).smoothing == 0.6, text
            await pilot.press("escape")


async def test_log_axis_says_when_not_all_values_are_above_zero() -> None:
    async with shown(scenes.healthy(1).view()) as (app, pilot):
        await pilot.press("L")
        text = await settled_text(pilot)
        assert "symlog y: some values <= 0" in text
        chart(app).metrics = ["Policy/Entropy"]
        app.redraw()
        text = await settled_text(pilot)
        assert "log y" in text
        assert "symlog" not in text


async def test_axis_of_time_shows_the_clock() -> None:
    async with shown(scenes.healthy(1).view()) as (_, pilot):
        await pilot.press("t")
        assert "11:07" in await settled_text(pilot)
        await pilot.press("t")
        text = await settled_text(pilot)
        assert "since the start" in text
        assert "2m" in text


async def test_zoom_stays_at_its_place_when_the_axis_changes() -> None:
    async with shown(scenes.healthy(1).view()) as (app, pilot):
        await pilot.press("plus", "plus", "shift+left", "shift+left")
        assert chart(app).window == pytest.approx((100_000, 140_000))
        await pilot.press("t", "t", "t")
        assert chart(app).x_axis == "steps"
        assert chart(app).window == pytest.approx((100_000, 140_000), rel=0.02)


async def test_marks_show_what_happened_below_the_crosshair() -> None:
    story = scenes.healthy(1)
    story.publish(HyperparameterChanged("Walker", 40_000, "learning_rate", 3e-4, 1e-4))
    story.publish(LessonChanged("Walker", 80_000, "terrain", 2, 5, "Hills"))
    story.publish(NoteAdded("a \x1b[31mred note", "Walker"))
    async with shown(story.view(), (120, 40)) as (app, pilot):
        text = await settled_text(pilot)
        assert all(sign in text for sign in "▴★Δ◆¶")
        for step, words in ((40_000, "learning_rate 3.0e-4 to 1.0e-4"), (80_000, "terrain lesson 2 Hills"),
                            (160_000, "a red note")):  # fmt: skip
            chart(app).crosshair = float(step)
            app.redraw()
            assert words in await settled_text(pilot)


async def test_notes_of_other_behaviors_are_not_marked() -> None:
    story = scenes.healthy(2)
    story.publish(NoteAdded("about the other", "Crawler"))
    story.publish(NoteAdded("about the run"))
    async with shown(story.view()) as (app, _):
        figure = app.screen.query_one(CurvesPane).drawn()
        assert figure is not None
        assert [mark.text for mark in figure.marks if mark.word == "note"] == ["about the run"]


async def test_wheel_zooms_around_the_pointer() -> None:
    async with shown(scenes.healthy(1).view()) as (app, pilot):
        pane = app.screen.query_one(CurvesPane)
        offset = (GUTTER + 1 + pane.num_cells // 4, 8)
        for _ in range(3):
            await pilot._post_mouse_events([MouseScrollUp], pane, offset=offset, button=0)
        await pilot.pause()
        window = chart(app).window
        assert window is not None
        assert window[1] - window[0] == pytest.approx(160_000 / 1.25**3)
        assert (40_000 - window[0]) / (window[1] - window[0]) == pytest.approx(0.25, abs=0.02)
        for _ in range(4):
            await pilot._post_mouse_events([MouseScrollDown], pane, offset=offset, button=0)
        await pilot.pause()
        assert chart(app).window is None


async def test_click_sets_the_crosshair_and_double_click_shows_everything() -> None:
    async with shown(scenes.healthy(1).view()) as (app, pilot):
        pane = app.screen.query_one(CurvesPane)
        await pilot.press("plus")
        await pilot.click(pane, offset=(GUTTER + 1, 8))
        assert chart(app).crosshair == pytest.approx(80_000, rel=0.01)
        assert app.focused is pane
        await pilot.pause(0.6)  # a later click is no second click
        await pilot.click(pane, offset=(GUTTER + 21, 8), times=2)
        assert (chart(app).crosshair, chart(app).window) == (None, None)


async def test_drag_pans_and_sets_no_crosshair() -> None:
    async with shown(scenes.healthy(1).view()) as (app, pilot):
        pane = app.screen.query_one(CurvesPane)
        await pilot.press("plus")
        await pilot.mouse_down(pane, offset=(GUTTER + 20, 8))
        await pilot.hover(pane, offset=(GUTTER + 40, 8))
        await pilot.mouse_up(pane, offset=(GUTTER + 40, 8))
        await pilot.pause()
        window = chart(app).window
        assert window is not None
        assert window[0] == pytest.approx(80_000 - 20 * 80_000 / pane.num_cells, rel=0.01)
        assert chart(app).crosshair is None
        assert not chart(app).is_live


async def test_a_range_of_the_y_axis_is_typed_and_a_wrong_one_changes_nothing() -> None:
    async with shown(scenes.healthy(1).view(), (200, 60)) as (app, pilot):
        await pilot.press("B", *["backspace"] * 4, *"5 low")
        assert """must be "low high", half-open as""" in await settled_text(pilot)
        await pilot.press("enter", *["backspace"] * 3, "1", "enter")
        assert "the first number must be below the second, got 5 and 1" in await settled_text(pilot)
        assert chart(app).y_ranges == {}
        await pilot.press("backspace", *"..", "enter")
        assert chart(app).y_ranges == {RETURN: (5.0, None)}
        assert "Return · Walker · by steps · smooth 0.6 · y from 5" in await settled_text(pilot)
        await pilot.press("m")
        assert "y from 5" in await settled_text(pilot), "the return has gone to the grid"
        await pilot.press("m", "escape", "B", *["backspace"] * 9, *"auto", "enter")
        assert chart(app).y_ranges == {RETURN: (5.0, None)}, "it is the range of the metric drawn"


@pytest.mark.parametrize("screen", ["overview", "chart"])
async def test_outliers_are_clipped_on_every_chart_and_counted(screen: str) -> None:
    story = scenes.healthy(1)
    story.publish(EpisodesFinished("Walker", 160_500, 1, 9e5, 1.0, 2.0, 500.0))
    async with shown(story.view(), (120, 40)) as (app, pilot):
        if screen == "chart":
            await pilot.press("f")
            await app.workers.wait_for_complete()
        assert "outliers clipped" not in await settled_text(pilot)
        await pilot.press("O")
        text = await settled_text(pilot)
        assert "by steps · smooth 0.6 · outliers clipped" in text
        assert "  ▲ <1%, to 900k │" in text
        assert "500 ┤" in text or "400┤" in text or "400 ┤" in text
        await pilot.press("M", *"entropy", "enter")
        assert "all visible" in await settled_text(pilot)


async def test_keys_before_the_first_curve_say_that_there_is_none() -> None:
    async with shown(scenes.warming_up().view()) as (_, pilot):
        for key in ("plus", "x", "left_square_bracket", "left"):
            await pilot.press(key)
            assert "there is no curve yet" in await settled_text(pilot)


async def test_metric_without_a_point_says_when_it_comes() -> None:
    async with shown(scenes.warming_up().view()) as (app, pilot):
        chart(app).metrics = ["Policy/Entropy"]
        app.redraw()
        text = await settled_text(pilot)
        assert "no Entropy yet" in text
        assert "appears with the first summary" in text


async def test_metric_that_another_behavior_has_says_so() -> None:
    story = scenes.healthy(1)
    story.begin("Other")
    story.publish(MetricsReported("Other", 10, 1.0, {"Losses/Q Loss": 1.0}, None, None, None, True))
    async with shown(story.view()) as (app, pilot):
        app.context.state.selected = 1
        chart(app).metrics = ["Policy/Entropy"]
        app.redraw()
        assert "Other reports other metrics" in await settled_text(pilot)


async def test_window_without_a_finite_value_says_how_to_leave_it() -> None:
    async with shown(scenes.nan().view()) as (app, pilot):
        chart(app).window, chart(app).is_live = (82_000.0, 83_000.0), False
        app.redraw()
        text = await settled_text(pilot)
        assert "no finite value in this window" in text
        await pilot.press("0")
        assert "✗" in await settled_text(pilot)


async def test_keys_change_the_state_also_where_no_chart_is_in_sight() -> None:
    async with shown(scenes.healthy(1).view(), (50, 12)) as (app, pilot):
        await pilot.press("s")
        assert chart(app).smoothing == 0.9
        assert "smooth 0.9" in await settled_text(pilot)


async def test_small_charts_share_window_and_crosshair() -> None:
    async with shown(scenes.healthy(1).view(), (200, 60)) as (app, pilot):
        await pilot.press("plus", "x", "left")
        large, *small = (pane.drawn() for pane in app.screen.query(ChartPane) if pane in spots(app.screen))
        assert large is not None
        assert len(small) == 6
        assert {(each.viewport, each.crosshair) for each in small if each} == {(large.viewport, large.crosshair)}
        assert len({each.curves[0].metric for each in small if each}) == 6


async def test_grid_never_repeats_what_the_large_chart_draws() -> None:
    view = scenes.healthy(1).view()
    async with shown(view, (200, 60)) as (app, pilot):
        for _ in range(len(view.behaviors["Walker"].histories)):
            figures = [pane.drawn() for pane in app.screen.query(ChartPane) if pane in spots(app.screen)]
            drawn = [curve.metric for figure in figures if figure for curve in figure.curves]
            assert len(drawn) == len(set(drawn)) == 7
            await pilot.press("m")


async def test_new_points_change_few_cells_of_a_chart_of_three() -> None:
    view = scenes.healthy(3).view()
    session = FakeSession(view)
    app = TrainerApp(session, clock=lambda: view.now)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("b")
        app.tick()
        await pilot.pause()
        painted = 0
        for report in range(1, 21):
            view.now += 1
            for at, name in enumerate(view.behaviors):
                step = 160_000 + 7000 * at + 300 * report
                session.bus.publish(EpisodesFinished(name, step, 1, 400.0 * (at + 1), 1.0, 2.0, 500.0))
            app.fold()
            pane = app.screen.query_one(CurvesPane)
            parts = pane.draw(app._frame(), spots(app.screen).get(pane), must=True)
            painted += sum(len(part.text) for part in parts)
        assert 0 < painted / 20 < 2000
