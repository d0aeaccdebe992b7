"""Charts of metrics in the room that the details of a behavior do not need."""

from __future__ import annotations

import pytest

from rl_tui.engine.session.history import History
from rl_tui.tui.panes.chart import CurvesPane, MetricChart
from rl_tui.tui.panes.histogram import HistogramPane
from rl_tui.tui.panes.rest_grid import LEAST, RestGrid, is_constant
from tests.tui import scenes
from tests.tui.driver import Driven


def rest_charts(driven: Driven) -> list[MetricChart]:
    """Those in sight that stand in such room."""
    grids = driven.screen.query(RestGrid)
    return [pane for grid in grids for pane in grid.query(MetricChart) if pane.display and grid.outer_size.height]


@pytest.mark.parametrize("size", [(120, 50), (140, 56), (200, 60)])
@pytest.mark.parametrize("keys", [[], ["enter"]])
async def test_no_metric_stands_twice_on_a_screen(size: tuple[int, int], keys: list[str]) -> None:
    async with Driven(scenes.healthy(1).view(), size) as driven:
        await driven.press(*keys)
        await driven.tick()
        panes = [pane for pane in driven.screen.query(MetricChart) if pane.display and pane.size.width]
        metrics = [pane.metric for pane in panes if pane.size.height]
        drawn = driven.drawn if driven.screen.query(CurvesPane) else ()
        assert len({*metrics, *drawn}) == len(metrics) + len(drawn)
        if size != (200, 60) or keys:
            assert rest_charts(driven), "there is room"


async def test_page_of_one_behavior_and_its_log_leave_no_half_of_the_screen_empty() -> None:
    async with Driven(scenes.healthy(1).view(), (200, 60)) as driven:
        text = await driven.press("enter")
        assert "Policy Loss" in text
        charts = rest_charts(driven)
        assert {pane.outer_size.width for pane in charts} == {50, 64}, "below the page and below the log"
        assert all(pane.outer_size.width >= LEAST[0] and pane.outer_size.height >= LEAST[1] for pane in charts)
        assert driven.screen.query_one(HistogramPane).size.width
        assert text.count("Returns in the last summary") == 1


@pytest.mark.parametrize("keys", [[], ["enter"]])
async def test_charts_come_and_go_with_the_size(keys: list[str]) -> None:
    async with Driven(scenes.healthy(1).view(), (80, 24)) as driven:
        await driven.press(*keys)
        small = await driven.text()
        assert not rest_charts(driven)
        await driven.pilot.resize_terminal(120, 56)
        await driven.text()
        assert rest_charts(driven)
        await driven.pilot.resize_terminal(80, 24)
        assert await driven.text() == small
        assert not rest_charts(driven)


async def test_a_failed_behavior_has_its_reason_in_that_room() -> None:
    async with Driven(scenes.environment_failed().view(), (200, 60)) as driven:
        await driven.press("enter")
        assert not rest_charts(driven)


async def test_there_is_none_before_the_first_summary() -> None:
    async with Driven(scenes.warming_up().view(), (200, 60)) as driven:
        await driven.press("enter")
        assert not rest_charts(driven)


def test_metric_is_constant_from_its_second_value_on() -> None:
    history = History()
    history.append(1, 1.0, 0.5)
    assert not is_constant(history)
    history.append(2, 2.0, 0.5)
    assert is_constant(history)
    history.append(3, 3.0, 0.6)
    assert not is_constant(history)
