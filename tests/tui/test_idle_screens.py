"""What is written to the terminal while nothing happens: nothing, a minute long."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from textual.screen import Screen

from rl_tui.engine.session.messages import RunStateChanged
from rl_tui.tui.app import TrainerApp
from rl_tui.tui.terminal.picture import Picture
from rl_tui.tui.textual_private import CompositorUpdate
from tests.tui import scenes
from tests.tui.driver import Driven
from tests.tui.settling import compositor_refresh


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All that a terminal would get, if there were one."""
    texts: list[str] = []
    picture = Picture(100, 30)

    def write(app: TrainerApp, _: Screen[None], update: CompositorUpdate | None) -> None:
        if update is not None:
            picture.draw(update.render_segments(app.console))
            texts.append(picture.difference())

    monkeypatch.setattr(Screen, "_compositor_refresh", compositor_refresh)
    monkeypatch.setattr(TrainerApp, "_display", write)
    return texts


async def minute(driven: Driven, written: list[str]) -> int:
    """How many bytes are written in the next 60 seconds."""
    await driven.tick()
    written.clear()
    for _ in range(60):
        driven.now += 1
        await driven.tick()
    return sum(len(text.encode()) for text in written)


def paused() -> scenes.Story:
    story = scenes.paused()
    story.publish(RunStateChanged("paused"))
    return story


@pytest.mark.parametrize("story", [scenes.finished, scenes.stopped, scenes.failed])
async def test_a_run_that_is_over_sends_nothing(story: Callable[[], scenes.Story], written: list[str]) -> None:
    async with Driven(story().view(), (100, 30)) as driven:
        assert await minute(driven, written) == 0


async def test_a_frozen_view_sends_nothing_though_the_run_goes_on(written: list[str]) -> None:
    async with Driven(scenes.healthy(3).view(), (100, 30)) as driven:
        await driven.press("space")
        assert await minute(driven, written) == 0


async def test_a_paused_run_sends_next_to_nothing(written: list[str]) -> None:
    async with Driven(paused().view(), (100, 30)) as driven:
        assert await minute(driven, written) <= 60 * 100  # its clocks go on


async def test_a_run_that_trains_is_seen_here(written: list[str]) -> None:
    """So that the others mean something."""
    async with Driven(scenes.healthy(3).view(), (100, 30)) as driven:
        assert await minute(driven, written) > 60 * 5
