"""The screen of one behavior: all that is known of it, at every size."""

from __future__ import annotations

import pytest
from textual.geometry import Region

from rl_tui.engine.session.messages import (
    BehaviorStateChanged,
    EnvironmentFailed,
    LogEmitted,
    ProgressReported,
    StepsAwaited,
    WorkerFailed,
)
from rl_tui.tui.panes.behavior_page import BehaviorPage
from rl_tui.tui.panes.chart import CurvesPane
from tests.tui import scenes
from tests.tui.driver import Driven

SIZES = [(80, 24), (120, 40), (200, 60)]


async def read_all(overview: Driven) -> str:
    """The screen's page from top to bottom, scrolled by its keys."""
    overview.app.screen.query_one(BehaviorPage).focus()
    await overview.press("home")
    texts = []
    for _ in range(12):
        texts.append(await overview.text())
        await overview.press("pagedown")
    return " ".join("\n".join(texts).split())


@pytest.mark.parametrize("size", SIZES)
async def test_page_shows_everything_at_every_size(size: tuple[int, int]) -> None:
    async with Driven(scenes.eventful().view(), size) as overview:
        await overview.press("enter")
        text = await read_all(overview)
        for words in (
            "160k/500k", "the policy may have collapsed", "raise beta", "mean of 100", "episodes", "environment", "61%",
            "KL", "learning_rate", "from 0.0001", "0.0003 -> 0.0001", 'terrain 3/5 "Hills"', 'terrain 1/5 "Flat"',
            "lower rate after", "parameters", "gymnasium:Walker-v5",
        ):  # fmt: skip
            assert words in text, words


async def test_failed_behavior_shows_its_whole_traceback_and_can_be_scrolled() -> None:
    async with Driven(scenes.environment_failed().view(), (80, 24)) as overview:
        await overview.press("enter")
        assert isinstance(overview.app.screen.focused, BehaviorPage)
        text = await read_all(overview)
        for row in scenes.TRACEBACK.splitlines():
            assert row.strip() in text or set(row.strip()) <= set("~^")


async def test_failure_with_hostile_text_reaches_no_terminal() -> None:
    story = scenes.healthy(1)
    story.publish(
        EnvironmentFailed("gymnasium:Walker-v5", ("Walker",), "bad \x1b[2J", "line 1\n\x1b]0;title\x07line 2")
    )
    story.publish(scenes.BehaviorStateChanged("Walker", "failed", "bad \x1b[2J"))
    async with Driven(story.view(), (120, 40)) as overview:
        await overview.press("enter")
        text = await read_all(overview)
        assert "line 1" in text
        assert "line 2" in text
        assert not any(char in text for char in "\x1b\x07")


LONG_LINE = 'raise ValueError("a wall cannot be built here", walls, "in a maze of this size, which is much too small")'
FAILURE = (
    f'Traceback (most recent call last):\n  File "/home/me/maze.py", line 12, in build\n    {LONG_LINE}\nValueError'
)


@pytest.mark.parametrize("size", [(120, 40), (200, 60)])
async def test_traceback_has_the_width_of_the_screen_and_is_copied_unwrapped(size: tuple[int, int]) -> None:
    story = scenes.healthy(2)
    story.publish(EnvironmentFailed("maze:Maze", ("Walker",), "start raised ValueError", FAILURE))
    story.publish(BehaviorStateChanged("Walker", "failed", "start raised ValueError"))
    async with Driven(story.view(), size) as overview:
        text = await overview.press("enter")
        assert f"    {LONG_LINE[:70]}" in text
        await overview.press("y")
        assert overview.clipboard.endswith(FAILURE)
        text = await overview.press("2")
        assert "Log of Crawler" in text
        assert "nothing has failed" in await overview.press("y")


async def test_failure_of_a_run_without_behaviors_is_on_the_page() -> None:
    story = scenes.empty()
    story.publish(EnvironmentFailed("maze:Maze", (), "start raised ValueError", FAILURE))
    async with Driven(story.view(), (120, 40)) as overview:
        text = await overview.press("enter")
        assert f"    {LONG_LINE[:70]}" in text


async def test_speed_of_what_hangs_goes_down_and_the_screen_says_since_when_no_step_came() -> None:
    story = scenes.healthy(1)
    async with Driven(story.view(), (120, 40)) as overview:
        steps = overview.view.behaviors["Walker"].sampled
        await overview.publish(ProgressReported("Walker", steps, steps, 1000.0, 9))
        text = await overview.publish(StepsAwaited("Walker", 2.5, "environment"))
        assert "500" in text
        assert "ETA" not in text
        overview.now += 1
        text = await overview.publish(StepsAwaited("Walker", 12.0, "environment"))
        assert "no step for 1" in text
        assert overview.view.steps_per_second == 0
        text = await overview.publish(StepsAwaited("Walker", 12.0, "update"))
        assert "updating for 1" in text
        text = await overview.publish(ProgressReported("Walker", steps + 9, steps + 9, 1000.0, 9))
        assert "ETA" in text
        assert "updating" not in text


async def test_another_behavior_is_selected_there() -> None:
    async with Driven(scenes.healthy(3).view(), (120, 40)) as overview:
        await overview.press("enter")
        assert "Log of Hopper" in await overview.press("3")
        await overview.press("tab")
        assert isinstance(overview.app.screen.focused, CurvesPane)
        assert "Log of Crawler" in await overview.press("up")


@pytest.mark.parametrize("key", ["down", "pagedown", "end"])
async def test_page_is_scrolled_at_once(key: str) -> None:
    async with Driven(scenes.eventful().view(), (80, 24)) as overview:
        assert "lines 1-8 of" in await overview.press("enter")
        text = await overview.press(key)
        assert "lines 1-8 of" not in text
        assert "Walker" in text.splitlines()[1]


async def test_arrows_select_another_behavior_where_there_is_nothing_to_scroll() -> None:
    async with Driven(scenes.healthy(3).view(), (200, 60)) as overview:
        await overview.press("enter")
        assert "Log of Crawler" in await overview.press("down")
        assert "Log of Walker" in await overview.press("up")


async def test_its_log_has_only_its_lines_and_those_for_debugging_where_the_log_has_them() -> None:
    story = scenes.healthy(3)
    story.publish(LogEmitted("debug", "Walker", "a debug line"), after=1)
    async with Driven(story.view(), (120, 40)) as overview:
        overview.app.context.state.log_level = "error"
        text = (await overview.press("enter")).split("Log of Walker")[1]
        assert "CKPT" in text
        assert "Hopper" not in text
        assert "keep_checkpoints" not in text
        assert "a debug line" not in text
        overview.app.context.state.log_level = "debug"
        assert "a debug line" in await overview.text()


async def test_page_of_a_run_without_behaviors_says_so() -> None:
    async with Driven(scenes.empty().view(), (120, 40)) as overview:
        assert "the run has no behavior yet" in await overview.press("enter")


async def test_bug_of_ours_is_kept_with_its_traceback() -> None:
    story = scenes.healthy(1)
    story.publish(WorkerFailed("saver", "KeyError: 'x'", "Traceback: in saver.py"))
    assert story.view().failures[-1].detail == "Traceback: in saver.py"


async def test_heading_counts_the_lines_of_the_picture_that_it_is_in() -> None:
    """Also in the first one of a new size, which Textual asks for before the next tick."""
    async with Driven(scenes.healthy(2).view(), (120, 40)) as screen:
        assert "lines 1-35 of 38" in await screen.press("enter")
        page = screen.screen.query_one(BehaviorPage)
        page.lines(page._frame, page.size.width, 8)  # as of a lower terminal
        page._entitle(page._frame)
        assert "lines 1-8 of 38" in str(page.border_title)
        page.forget_lines()
        heading = page.render_lines(Region(0, 0, *page.outer_size))[0].text
        assert "lines 1-35 of 38" in heading
