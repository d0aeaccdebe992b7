"""What is left of a screen that was closed."""

from __future__ import annotations

import gc

from textual import events
from textual.widget import Widget

from tests.tui import scenes
from tests.tui.driver import Driven


async def test_closed_screen_leaves_nothing_that_was_rendered() -> None:
    async with Driven(scenes.healthy(2).view(), (120, 40)) as overview:
        for key in ("f", "k", "l"):
            await overview.press(key)
            await overview.press("escape")
        gc.collect()
        alive = gc.get_objects()
        names = [type(each).__name__ for each in alive]
        assert names.count("StylesCache") == sum(isinstance(each, Widget) for each in alive)


async def test_key_that_comes_when_the_screens_are_closed_does_nothing() -> None:
    """Textual closes them before it stops reading."""
    async with Driven(scenes.healthy(2).view(), (80, 24)) as overview:
        app = overview.app
        stack = app._screen_stack
        screens = stack.copy()
        stack.clear()
        await app.on_event(events.Key("h", "h"))
        stack.extend(screens)
        await overview.press("h")
        assert len(app.screen_stack) == len(screens) + 1, "help opens again"
