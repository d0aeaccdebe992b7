"""Before a run is left: what each answer costs, in true figures."""

from __future__ import annotations

import re

import pytest

from rl_tui.engine.session.messages import BehaviorStateChanged, ProgressReported, SaveCheckpoint, Stop
from rl_tui.tui.screens.leave import LeaveScreen, cost_of_stopping
from tests.tui import scenes
from tests.tui.driver import Driven


def cost(story: scenes.Story) -> str:
    return cost_of_stopping(story.view())


def test_cost_is_what_came_after_the_last_checkpoint() -> None:
    story = scenes.healthy(1)
    story.publish(ProgressReported("Walker", 162_300, 162_300, 300.0, 80))
    assert cost(story) == "loses 12.3k steps (41s of training) since the last checkpoint"


def test_time_that_a_behavior_stood_still_is_not_lost() -> None:
    story = scenes.healthy(1)
    story.publish(ProgressReported("Walker", 162_300, 162_300, 300.0, 80))
    story.publish(BehaviorStateChanged("Walker", "paused"))
    story.time += 36_000.0
    story.devices()
    assert re.fullmatch(r"loses 12\.3k steps \(\d+s of training\) since the last checkpoint", cost(story))


def test_steps_of_several_behaviors_are_added_and_the_longest_time_counts() -> None:
    story = scenes.healthy(2)
    story.publish(ProgressReported("Walker", 150_900, 150_900, 300.0, 80))
    story.publish(ProgressReported("Crawler", 150_100, 150_100, 100.0, 80))
    assert cost(story) == "loses 1.00k steps (3s of training) since the last checkpoint"


def test_run_without_a_checkpoint_loses_all_of_it() -> None:
    story = scenes.Story()
    story.begin("Walker")
    story.publish(ProgressReported("Walker", 9_000, 9_000, 300.0, 4))
    assert cost(story) == "loses 9.00k steps (30s of training) that no checkpoint has"


def test_resumed_run_does_not_lose_what_it_began_with() -> None:
    story = scenes.Story()
    story.begin("Walker")
    story.publish(scenes.BehaviorStarted("Walker", "ppo", "gymnasium:Walker-v5", 80_000, 500_000, 8, 9347, True))
    story.publish(BehaviorStateChanged("Walker", "training"))
    story.publish(ProgressReported("Walker", 80_600, 80_600, 300.0, 4))
    assert cost(story) == "loses 600 steps (2s of training) that no checkpoint has"


def test_nothing_is_lost_right_after_a_checkpoint() -> None:
    story = scenes.healthy(1)
    story.save("Walker", 160_000, 400.0)
    assert cost(story) == "nothing is lost"


async def test_paused_behaviors_are_called_paused() -> None:
    async with Driven(scenes.paused().view(), (120, 40)) as overview:
        assert "Leave? 2 behaviors are training, 1 is paused" in await overview.press("q")
    story = scenes.healthy(1)
    story.publish(BehaviorStateChanged("Walker", "paused"))
    async with Driven(story.view(), (120, 40)) as overview:
        assert "Leave? 1 behavior is paused" in await overview.press("q")


@pytest.mark.parametrize("key", ["s", "k", "y"])
async def test_readonly_screen_stops_nothing_by_its_keys_and_says_what_does(key: str) -> None:
    async with Driven(scenes.healthy(1).view(), (120, 40), refuses="--readonly was given") as overview:
        text = " ".join((await overview.press("q")).replace("│", "").split())
        assert "--readonly was given: only ctrl+c stops the run here, and saves" in text
        await overview.press(key)
        assert overview.session.commands == []
        await overview.press("ctrl+c", "ctrl+c")
        assert [command.mode for command in overview.session.commands if isinstance(command, Stop)] == ["checkpoint"]


async def test_staying_is_what_enter_does_and_it_changes_nothing() -> None:
    async with Driven(scenes.healthy(1).view(), (120, 40)) as overview:
        text = await overview.press("q")
        assert re.search(r"▸ esc +stay +nothing changes", text)
        assert "nothing changes" not in await overview.press("enter")
        assert overview.session.commands == []


async def test_click_on_an_answer_gives_it() -> None:
    async with Driven(scenes.healthy(1).view()) as screen:
        text = await screen.press("q")
        row = next(y for y, line in enumerate(text.splitlines()) if "esc" in line and "stay" in line)
        await screen.pilot.click(offset=(text.splitlines()[row].index("stay"), row))
        assert not isinstance(screen.app.screen, LeaveScreen)


async def test_click_on_a_key_of_the_bottom_line_does_what_the_key_does() -> None:
    async with Driven(scenes.healthy(1).view()) as screen:
        bottom = (await screen.text()).splitlines()[23]
        await screen.pilot.click(offset=(bottom.index("checkpoint"), 23))
        assert isinstance(screen.session.commands[-1], SaveCheckpoint)


async def test_dialog_has_its_height_from_its_first_layout_on(monkeypatch: pytest.MonkeyPatch) -> None:
    laid_out_again: list[object] = []  # each time is another picture for the terminal
    async with Driven(scenes.healthy(1).view(), (120, 40)) as screen:
        monkeypatch.setattr("rl_tui.tui.panes.base.request_layout_again", laid_out_again.append)
        assert "ctrl+c again" in await screen.press("q")
    assert laid_out_again == []
