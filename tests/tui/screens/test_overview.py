"""The overview: which pane has the keys, what they open, and how the table is filtered and clicked."""

from __future__ import annotations

import re

import pytest
from textual.events import MouseScrollDown, MouseScrollUp

from rl_tui.engine.session.messages import BehaviorStateChanged, MetricsReported
from rl_tui.tui.app import TrainerApp
from rl_tui.tui.panes.base import Pane
from rl_tui.tui.panes.behaviors import BehaviorsPane
from rl_tui.tui.screens.overview import LogPane
from tests.fakes import FakeSession
from tests.tui import scenes
from tests.tui.driver import Driven
from tests.tui.snapshots import settled_text


def overview_of(story: scenes.Story, size: tuple[int, int] = (120, 40), refuses: str = "") -> Driven:
    """The overview of that run."""
    return Driven(story.view(), size, refuses=refuses)


PANES = {
    "behaviors": ("▸ Behaviors 1/2", "detail"),
    "chart": ("▸ Return", "chart"),
    "checkpoints": ("▸ Checkpoints of Walker · 3", "checkpoints"),
    "devices": ("▸ Devices", "devices"),
    "log": ("▸ Log", "log"),
}


@pytest.mark.parametrize("topic", PANES)
async def test_tab_leads_to_each_pane_whose_heading_is_marked_and_enter_opens_its_screen(topic: str) -> None:
    marked, opened = PANES[topic]
    async with overview_of(scenes.healthy(2, gpus=1)) as overview:
        text = await overview.text()
        for _ in range(list(PANES).index(topic)):
            text = await overview.press("tab")
        assert [heading for heading, _ in PANES.values() if heading in text] == [marked]
        await overview.press("enter")
        assert overview.screen.name == opened
        await overview.press("escape")
        assert marked in await overview.text()


async def test_keys_return_to_a_pane_when_the_terminal_grows_again() -> None:
    async with overview_of(scenes.healthy(2)) as overview:
        await overview.press("tab", "tab")
        for size in ((50, 12), (120, 40)):
            await overview.pilot.resize_terminal(*size)
            await overview.text()  # takes note of what is in sight
        assert "▸ Behaviors 1/2" in await overview.text()
        await overview.press("enter")
        assert overview.screen.name == "detail"


async def test_table_is_filtered_and_says_when_the_selected_behavior_is_filtered_out() -> None:
    async with overview_of(scenes.healthy(12)) as overview:
        await overview.press("slash", "h", "u", "enter")
        overview.app.context.state.selected = 0
        text = await overview.text()
        assert "Humanoid" in text
        assert "Crawler" not in text.split("Return")[0]
        assert "Walker is selected but filtered out" in text
        assert "▸ 9 Humanoid" in (await overview.press("up")).replace("  ", " ")
        assert "Crawler" in await overview.press("escape")


async def test_arrows_move_among_the_rows_that_the_filter_shows() -> None:
    async with overview_of(scenes.healthy(12)) as overview:
        overview.app.context.state.filters["behaviors"] = "^(Hopper|Worm|Ant) "
        overview.app.context.state.selected = 2
        await overview.text()
        for selected in (4, 10, 10):
            await overview.press("down")
            assert overview.app.context.state.selected == selected


async def test_clicked_row_is_selected_and_a_second_click_opens_it() -> None:
    async with overview_of(scenes.healthy(3)) as overview:
        await overview.text()
        await overview.pilot.click(BehaviorsPane, offset=(8, 4))
        assert "▸ 3 Hopper" in await overview.text()
        await overview.pilot.click(BehaviorsPane, offset=(8, 3), times=2)
        await overview.text()
        assert overview.screen.name == "detail"
        assert overview.app.context.state.selected == 1


async def test_wheel_selects_the_next_behavior() -> None:
    async with overview_of(scenes.healthy(6)) as overview:
        await overview.text()
        pane = overview.screen.query_one(BehaviorsPane)
        await overview.pilot._post_mouse_events([MouseScrollDown], pane, offset=(8, 4), button=0)
        assert "▸ 2 Crawler" in await overview.text()
        await overview.pilot._post_mouse_events([MouseScrollUp], pane, offset=(8, 4), button=0)
        assert "▸ 1 Walker" in await overview.text()


async def test_click_gives_a_pane_the_keys() -> None:
    async with overview_of(scenes.healthy(2)) as overview:
        await overview.text()
        await overview.pilot.click(LogPane, offset=(5, 2))
        assert "▸ Log" in await overview.text()


async def test_log_shows_the_chosen_level_and_behavior_and_says_so() -> None:
    async with overview_of(scenes.eventful()) as overview:
        state = overview.app.context.state
        assert "Log · info and above" in await overview.text()
        state.log_level = "warning"
        text = await overview.text()
        assert "Log · warnings and errors" in text
        assert "lower rate after" not in text
        state.log_level, state.log_is_of_selected = "info", True
        text = await overview.text()
        assert "Log of Walker · info and above" in text
        assert "disk full" not in text.split("Log of Walker")[1]


async def test_best_checkpoint_stands_first() -> None:
    story = scenes.healthy(1)
    for step in range(151_000, 159_000, 1000):
        story.save("Walker", step, 100.0, seconds_later=1)
    async with overview_of(story) as overview:
        rows = [line for line in (await overview.text()).splitlines() if " ago " in line and "M" in line]
        assert "★  150k" in rows[0]
        assert "158k" in rows[1]


async def test_failed_behavior_shows_why_where_its_figures_stand() -> None:
    async with overview_of(scenes.nan()) as overview:
        text = await overview.text()
        assert "✗ failed" in text
        assert "last finite state kept" in " ".join(text.split())


async def test_lessons_rating_and_warnings_show_where_there_are_any() -> None:
    async with overview_of(scenes.eventful()) as overview:
        text = await overview.text()
        for words in ("lesson", "3/5", "elo", "1240", "! training", "! 2 warnings", '3/5 "Hills"'):
            assert words in text
    async with overview_of(scenes.healthy(2)) as overview:
        text = await overview.text()
        for words in ("lesson", "elo", "! training", "warning"):
            assert words not in text.split("Log")[0]


async def test_waiting_is_reported_only_where_there_was_any() -> None:
    story = scenes.healthy(1)
    async with overview_of(story) as overview:
        assert "waiting" not in await overview.text()
    story.publish(scenes.TimeSplit("Walker", 50.0, 10.0, 20.0, 15.0, 5.0))
    async with overview_of(story) as overview:
        assert "waiting" in await overview.text()


async def test_state_change_shows_before_the_next_beat() -> None:
    story = scenes.healthy(2)
    view = story.view()
    app = TrainerApp(FakeSession(view), clock=lambda: view.now)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.tick()
        view.apply(scenes.Envelope(view.position[1] + 1, view.now, BehaviorStateChanged("Crawler", "paused")))
        app.tick()
        assert "‖ paused" in await settled_text(pilot)


async def test_small_charts_go_on_where_pictures_are_so_rare_that_the_figures_change_with_each() -> None:
    """A large screen beside a busy training has a picture a second, and figures are due after 0.9 seconds."""
    metrics = {"Environment/Episode Length": 7000.0, "Policy/Entropy": 7000.0}
    async with overview_of(scenes.healthy(1), (200, 60)) as overview:
        assert "last 7000" not in await overview.text()
        for number in range(20):
            step = 400_000 + 1000 * number
            text = await overview.publish(MetricsReported("Walker", step, 60.0, metrics, None, None, None, True))
        assert text.count("last 7000") == 2


async def test_readonly_is_said_in_the_bottom_line() -> None:
    async with overview_of(scenes.healthy(1), refuses="--readonly was given") as overview:
        assert "READ ONLY" in (await overview.text()).splitlines()[-1]


async def test_every_pane_with_keys_has_a_topic() -> None:
    async with overview_of(scenes.healthy(1)) as overview:
        focusable = [pane for pane in overview.app.screen.query(Pane) if pane.can_focus]
        assert [pane.topic for pane in focusable] == list(PANES)


async def test_every_gpu_of_a_large_machine_is_in_sight_with_its_history() -> None:
    for size in ((120, 40), (200, 60)):
        async with overview_of(scenes.healthy(1, gpus=8), size) as overview:
            text = (await overview.text()).split("Devices")[1].split("Log")[0]
            for gpu in range(8):
                assert re.search(rf"gpu{gpu} +[▁▂▃▄▅▆▇]+ +\d+%", text), f"gpu{gpu} at {size}"


async def test_disk_that_is_nearly_full_is_said_in_the_state_line() -> None:
    async with overview_of(scenes.hot_gpu(), (80, 24)) as overview:
        assert "! disk 1.0G free" in (await overview.text()).splitlines()[0]


@pytest.mark.parametrize("size", [(38, 9), (20, 5)])
async def test_too_small_terminal_says_so_on_every_screen(size: tuple[int, int]) -> None:
    async with overview_of(scenes.healthy(1), size) as overview:
        for keys in ((), ("enter",)):
            text = await overview.press(*keys) if keys else await overview.text()
            assert "terminal too small" in text
            assert "training goes on" in " ".join(text.split())
