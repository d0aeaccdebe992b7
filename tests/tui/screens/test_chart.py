"""The chart on the whole screen."""

from __future__ import annotations

import re

import pytest

from rl_tui.engine.session.messages import EpisodesFinished
from rl_tui.tui.app import TrainerApp
from rl_tui.tui.panes.full_chart import FullChart
from tests.fakes import FakeSession
from tests.tui import scenes
from tests.tui.driver import Driven
from tests.tui.snapshots import check, settled_text


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
@pytest.mark.parametrize("num", [1, 3])
async def test_full_chart_looks_as_it_was_designed(size: tuple[int, int], num: int) -> None:
    async with Driven(scenes.healthy(num).view(), size) as driven:
        await driven.press(*["b"] * (num > 1))
        text = await driven.press("f")
        check(f"chart-{num}-{size[0]}x{size[1]}", text)
        assert text.count("by steps") == 1, "the title is there once"


async def test_crosshair_has_a_column_in_the_table_of_several_curves() -> None:
    async with Driven(scenes.healthy(3).view(), (120, 40), opened="chart") as driven:
        before = await driven.press("b")
        rows = (await driven.press("x", "left", "left")).splitlines()
        assert "lowest" in before
        header = next(row for row in rows if "lowest" in row)
        place = header.split("highest")[1].split()[0]
        assert place.endswith("k")
        for name in ("Walker", "Crawler", "Hopper"):
            row = next(row for row in rows if f"{name} " in row and "│" in row)
            assert len(row.split("│")[1].split()) == 6, "sign, name, last, lowest, highest, and that at the crosshair"


async def test_curves_with_scales_of_their_own_say_theirs() -> None:
    async with Driven(scenes.healthy(1).view(), (120, 40), opened="chart") as driven:
        driven.app.context.state.chart.metrics = ["Return", "Policy/Entropy"]
        text = await driven.press("s")
        assert "separate scales" in text
        assert len(re.findall(r"axis \S+ to \S+", text)) == 2


async def test_many_curves_leave_the_chart_its_room() -> None:
    async with Driven(scenes.healthy(12).view(), (80, 24), opened="chart") as driven:
        rows = (await driven.press("b")).splitlines()
        assert sum("┤" in row for row in rows) >= 3
        assert not any("lowest" in row for row in rows)


async def test_lines_at_the_values_are_left_out_where_they_would_look_like_curves() -> None:
    async with Driven(scenes.healthy(1).view(), (100, 30), opened="chart") as driven:
        assert "┈┈┈" in await driven.text()
    async with Driven(scenes.healthy(1).view(), (100, 30), opened="chart", is_ascii=True) as driven:
        assert (await driven.text()).isascii()


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_f_opens_the_chart_with_what_was_chosen_and_f_goes_back(size: tuple[int, int]) -> None:
    view = scenes.healthy(3).view()
    app = TrainerApp(FakeSession(view), clock=lambda: view.now + 2)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()  # + zooms in on what is drawn
        await pilot.press("b", "plus", "f")
        text = await settled_text(pilot)
        assert "Return · 3 behaviors · by steps · smooth 0.6 · last 90k" in text
        assert all(f"{at} {name}" in text for at, name in ((1, "Walker"), (2, "Crawler"), (3, "Hopper")))
        await pilot.press("m", "s")
        assert "Episode Length · 3 behaviors · by steps · smooth 0.9" in await settled_text(pilot)
        await pilot.press("f")
        assert app.screen is app.overview
        assert "Episode Length · 3 behaviors" in await settled_text(pilot)


async def test_every_key_changes_the_chart() -> None:
    view = scenes.healthy(2).view()
    app = TrainerApp(FakeSession(view), clock=lambda: view.now + 2)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("f")
        old = await settled_text(pilot)
        for key in ("m", "b", "plus", "left", "shift+left", "end", "0", "x", "left", "s", "L", "t", "M"):
            await pilot.press(key)
            new = await settled_text(pilot)
            assert new != old, key
            old = new


async def test_click_sets_the_crosshair_below_the_pointer() -> None:
    view = scenes.healthy(1).view()
    app = TrainerApp(FakeSession(view), clock=lambda: view.now + 2)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("f")
        await settled_text(pilot)
        pane = app.screen.query_one(FullChart)
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
        text = await driven.press("b")
    assert "2 Broken" in text
    assert "✗" in text


@pytest.mark.parametrize("size", [(40, 10), (60, 12), (40, 14)])
async def test_curve_is_drawn_where_there_is_no_room_for_a_frame_around_it(size: tuple[int, int]) -> None:
    async with Driven(scenes.healthy(1).view(), size, opened="chart") as driven:
        text = await driven.text()
    assert "too small" not in text
    assert sum(chr(0x2800) < char <= chr(0x28FF) for char in text) > 10


async def test_chart_of_a_run_that_starts_says_what_it_waits_for() -> None:
    view = scenes.warming_up().view()
    app = TrainerApp(FakeSession(view), clock=lambda: view.now + 2)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("f")
        assert "waiting for the first episode" in await settled_text(pilot)


async def test_figure_is_drawn_again_only_when_something_changed() -> None:
    view = scenes.healthy(1).view()
    session = FakeSession(view)
    app = TrainerApp(session, clock=lambda: view.now + 2)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("f")
        await settled_text(pilot)
        pane = app.screen.query_one(FullChart)
        first = pane._drawn
        view.now += 10
        app.tick()
        app.tick()
        assert pane._drawn is first
        session.bus.publish(EpisodesFinished("Walker", 161_000, 1, 900.0, 1.0, 2.0, 500.0))
        view.now += 10
        app.tick()  # the panes of the usual pace go first
        app.tick()
        assert pane._drawn is not first
