"""The grid of charts: which metrics stand in it, how many fit, and its pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rl_tui.engine.session.behavior_view import RETURN
from rl_tui.engine.session.view import RunView
from rl_tui.tui.charts.drawing import draw
from rl_tui.tui.charts.figure import Figure
from rl_tui.tui.charts.metrics import USUAL, grid_metrics
from rl_tui.tui.drawing.lines import Line
from rl_tui.tui.panes import chart
from rl_tui.tui.panes.chart import CurvesPane, MetricChart
from rl_tui.tui.panes.metric_grid import arranged
from rl_tui.tui.state.choices import ScreenState
from rl_tui.tui.state.preferences import Preferences, SavedView, to_json
from tests.fakes import FakeSession
from tests.tui import scenes
from tests.tui.driver import Driven
from tests.tui.snapshots import check

SIZES = [(80, 24), (120, 40), (200, 60)]
LENGTH, ENTROPY, KL = "Environment/Episode Length", "Policy/Entropy", "Policy/KL Divergence"
FULL = [*USUAL, "Losses/Policy Loss"]  # where one cell would be empty


def grid_of(view: RunView, size: tuple[int, int]) -> Driven:
    """That run on the screen of the grid."""
    return Driven(view, size, opened="grid")


def in_sight(driven: Driven) -> list[str]:
    """The metrics of the small charts on the screen, in their order."""
    return [pane.metric for pane in driven.screen.query(MetricChart) if pane.display and pane.size.width]


def test_usual_metrics_leave_out_what_the_large_chart_draws() -> None:
    tags = scenes.healthy(1).view().behaviors["Walker"].histories
    assert grid_metrics(tags, (), [RETURN]) == list(USUAL)
    assert grid_metrics(tags, (), [RETURN], most=7) == FULL, "there is room for another one"
    assert grid_metrics(tags, (), [ENTROPY])[:3] == [RETURN, LENGTH, KL]


def test_metrics_that_a_behavior_does_not_have_are_left_out_once_it_has_reported_which_it_has() -> None:
    tags = [RETURN, LENGTH, ENTROPY]
    assert grid_metrics(tags, [KL, ENTROPY], [RETURN]) == [ENTROPY]
    assert grid_metrics(tags, [KL], [RETURN]) == [LENGTH, ENTROPY], "nothing pinned is there: the usual ones"
    assert grid_metrics([RETURN], [KL, ENTROPY], [RETURN]) == [KL, ENTROPY], "no summary yet"


@pytest.mark.parametrize("num_charts", [1, 2, 7, 12])
@pytest.mark.parametrize("size", [(1, 1), (24, 8), (60, 12), (80, 21), (120, 37), (200, 57), (70, 27)])
def test_charts_are_never_smaller_than_can_be_read(num_charts: int, size: tuple[int, int]) -> None:
    columns, rows = arranged(num_charts, size, (24, 8))
    assert columns == 1 or size[0] // columns >= 24
    assert rows == 1 or size[1] // rows >= 8
    assert columns * (rows - 1) < num_charts, "no row is empty"


@pytest.mark.parametrize("size", SIZES)
async def test_number_sign_opens_the_grid_which_looks_as_it_was_designed(size: tuple[int, int]) -> None:
    async with Driven(scenes.healthy(3).view(), size) as driven:
        check(f"grid-{size[0]}x{size[1]}", await driven.press("#"))
        await driven.press("#")
        assert driven.screen.name == "overview"


async def test_pages_show_every_metric_once_then_the_histogram_and_begin_again() -> None:
    async with grid_of(scenes.healthy(1).view(), (80, 24)) as driven:
        seen, texts = [], []
        for _ in range(3):
            seen += in_sight(driven)
            texts.append(await driven.text())
            await driven.press("n")
        assert seen == list(USUAL)
        assert [f"page {number}/3" in text for number, text in enumerate(texts, 1)] == [True] * 3
        assert ["Returns in the last summary" in text for text in texts] == [False, False, True]
        assert in_sight(driven) == seen[:3]
        assert "page 3/3" in await driven.press("N")


async def test_page_that_the_terminal_has_room_for_is_the_only_one() -> None:
    async with grid_of(scenes.healthy(1).view(), (120, 40)) as driven:
        assert in_sight(driven) == FULL, "no cell is empty"
        assert "all charts are visible" in await driven.press("n")
        await driven.pilot.resize_terminal(80, 24)
        assert "page 1/3" in await driven.text()


async def test_key_for_pages_says_where_the_grid_is_when_none_is_in_sight() -> None:
    async with Driven(scenes.healthy(1).view(), (80, 24)) as driven:
        assert "no chart grid is visible; # opens it" in await driven.press("n")


async def test_metric_of_the_chart_is_pinned_and_unpinned_by_the_same_key() -> None:
    async with Driven(scenes.healthy(1).view(), (80, 24)) as driven:
        assert "pinned Episode Length: 7 in the grid; # opens it" in await driven.press("m", "i")
        await driven.press("#", "n", "n")
        assert in_sight(driven) == [LENGTH]
        assert "unpinned Episode Length: 6 in the grid" in await driven.press("i")
        assert LENGTH not in in_sight(driven)


async def test_metrics_are_pinned_while_they_are_picked_and_only_enter_keeps_that() -> None:
    async with grid_of(scenes.healthy(1).view(), (120, 40)) as driven:
        state = driven.app.context.state.chart
        text = await driven.press("M", *"estimate", "tab")
        assert "enter keeps 7 in the grid" in text
        assert "in the grid" in next(row for row in text.splitlines() if "Policy/Extrinsic Value Estimate" in row)
        await driven.press("escape")
        assert state.pinned == {}
        await driven.press("M", *"estimate", "tab", "enter")
        assert state.pinned == {"ppo": [*USUAL, "Policy/Extrinsic Value Estimate"]}
        assert state.metrics == [], "what the large chart draws was not marked"
        await driven.press("M", *"entropy", "space", "tab", "enter")
        assert ENTROPY not in state.pinned["ppo"]
        assert state.metrics == [RETURN, ENTROPY]


async def test_usual_metrics_come_back_when_the_last_pinned_one_goes() -> None:
    async with grid_of(scenes.healthy(1).view(), (80, 24)) as driven:
        state = driven.app.context.state.chart
        state.metrics, state.pinned = [KL], {"ppo": [KL]}
        await driven.text()
        assert in_sight(driven) == [KL]
        assert "unpinned KL Divergence, the last one: the usual metrics are back" in await driven.press("i")
        assert state.pinned == {}
        assert in_sight(driven) == [RETURN, LENGTH, ENTROPY]


async def test_behaviors_of_each_algorithm_have_pins_of_their_own() -> None:
    async with grid_of(scenes.soft().view(), (200, 60)) as driven:
        state = driven.app.context.state.chart
        state.pinned = {"ppo": [KL]}
        await driven.text()
        assert in_sight(driven) == [KL]
        await driven.press("2")
        assert "Losses/Q1 Loss" in in_sight(driven)
        assert KL not in in_sight(driven)


async def test_pins_are_remembered_and_the_page_is_not(tmp_path: Path) -> None:
    preferences, view, state = Preferences(tmp_path), scenes.healthy(1).view(), ScreenState()
    assert view.run is not None
    state.chart.pin("ppo", [KL, ENTROPY])
    state.chart.page = 1
    preferences.save_view(Path(view.run.path), to_json(state, "Walker"))
    recalled = ScreenState()
    assert SavedView(preferences, FakeSession(view).live, recalled).restore()
    assert recalled.chart.pinned == {"ppo": [KL, ENTROPY]}
    assert recalled.chart.page == 0


async def test_zoom_and_crosshair_are_those_of_every_chart() -> None:
    async with grid_of(scenes.healthy(1).view(), (120, 40)) as driven:
        await driven.press("+", "x", "left")
        charts = [pane.drawn() for pane in driven.screen.query(MetricChart) if pane.display]
        first = driven.screen.query_one(CurvesPane).drawn()
        assert first is not None
        assert len(charts) == len(FULL)
        assert {(each.viewport, each.crosshair) for each in charts if each} == {(first.viewport, first.crosshair)}


async def test_chart_of_which_nothing_changed_is_not_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []

    def counted(figure: Figure, *more: Any) -> list[Line]:
        drawn.append(figure.curves[0].metric)
        return draw(figure, *more)

    def later() -> None:
        """Long enough for every chart: those of the usual pace go first."""
        drawn.clear()
        driven.now += 10
        driven.app.tick()
        driven.app.tick()

    monkeypatch.setattr(chart, "draw", counted)
    async with grid_of(scenes.healthy(1).view(), (120, 40)) as driven:
        later()
        assert drawn == [RETURN]
        driven.view.behaviors["Walker"].histories[KL].append(160_000, driven.now, 0.5)
        later()
        assert drawn == [RETURN, KL]
