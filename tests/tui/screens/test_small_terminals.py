"""Terminals around the smallest sizes: which layout they get, and that nothing that matters is left out there."""

from __future__ import annotations

import itertools
import time

import pytest
from textual import _time

from tests.tui import scenes
from tests.tui.driver import Driven

AROUND_SMALLEST = list(itertools.product((39, 40, 41), (9, 10, 11, 12, 13)))
AROUND_COMPACT = list(itertools.product((59, 60, 61), (14, 15, 16)))
WARNED = "! newest of 2: disk full in 40 minutes"


async def test_what_a_terminal_shows_changes_exactly_at_the_sizes_that_are_documented() -> None:
    async with Driven(scenes.eventful().view(), (120, 40)) as driven:
        for columns, rows in AROUND_SMALLEST + AROUND_COMPACT:
            await driven.pilot.resize_terminal(columns, rows)
            text = await driven.text()
            is_too_small, is_compact = columns < 40 or rows < 10, columns < 60 or rows < 15
            assert ("too small" in text) == is_too_small, (columns, rows)
            assert (f"({columns}x{rows}), need 40x10" in " ".join(text.split())) == is_too_small, (columns, rows)
            assert ("Behaviors 1/2" in text) == (not is_compact), (columns, rows)
            assert ("160k" not in text and "Crawler " in text) == (is_compact and not is_too_small), (columns, rows)


async def test_size_is_followed_though_the_processor_was_elsewhere_when_it_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Textual waits a 120th of a second for further changes, and forgets all where it finds that time already over."""
    clock = _time.get_time

    def interrupted_clock() -> float:
        now = clock()
        time.sleep(0.010)
        return now

    async with Driven(scenes.eventful().view(), (39, 9)) as driven:
        monkeypatch.setattr(_time, "get_time", interrupted_clock)
        await driven.pilot.resize_terminal(40, 10)
        monkeypatch.undo()
        assert "Crawler" in await driven.until(lambda text: "too small" not in text)


async def test_terminal_that_is_too_small_does_not_say_that_a_run_that_is_over_goes_on() -> None:
    for view, words in ((scenes.eventful().view(), "training goes on"), (scenes.finished().view(), "the run is over")):
        async with Driven(view, (39, 9)) as driven:
            assert f"need 40x10 - {words}" in " ".join((await driven.text()).split())


@pytest.mark.parametrize("screen", ["detail", "chart", "checkpoints", "hyperparameters", "log", "configuration"])
async def test_every_screen_has_room_on_the_smallest_terminal(screen: str) -> None:
    async with Driven(scenes.eventful().view(), (40, 10), opened=screen) as driven:
        for columns, rows in ((40, 10), (41, 12), (39, 10), (40, 9)):
            await driven.pilot.resize_terminal(columns, rows)
            text = await driven.text()
            assert ("too small" in text) == (columns < 40 or rows < 10), (columns, rows)


@pytest.mark.parametrize("size", [(59, 24), (50, 12), (80, 14), (40, 10), (38, 9), (20, 6)])
async def test_warnings_are_counted_and_the_newest_is_said_on_small_terminals(size: tuple[int, int]) -> None:
    async with Driven(scenes.eventful().view(), size) as driven:
        state, _, rest = (await driven.text()).partition("\n")
        assert WARNED[: size[0] - 6] in " ".join(rest.split())
        assert "! 2 warnings" in state or size[0] < 38


async def test_behavior_with_a_warning_is_marked_on_a_small_terminal() -> None:
    async with Driven(scenes.eventful().view(), (50, 12)) as driven:
        text = await driven.text()
        assert "▸! Walker" in text
        assert " ● Crawler" in text


async def test_warnings_leave_the_selected_behavior_in_sight() -> None:
    story = scenes.healthy(12)
    story.publish(scenes.WarningRaised("disk", "", "disk full in 40 minutes at this rate " * 5, "wait"))
    async with Driven(story.view(), (40, 10)) as driven:
        driven.app.context.state.selected = 11
        text = await driven.text()
        assert "▸● AVeryLong" in text
        assert "! disk full" in text
