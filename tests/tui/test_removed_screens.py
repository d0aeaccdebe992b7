"""What is left of a screen that was closed."""

from __future__ import annotations

import gc

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
