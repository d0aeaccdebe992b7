"""When a screen in this process is at rest: on events, never after a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from textual._context import visible_screen_stack
from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen

from tests.deadline import DEADLINE_SECONDS

compositor_refresh = Screen._compositor_refresh


async def until_nothing_is_ready(*_: float) -> None:
    """Every callback, message and task that could go on has done so; timers and threads are not waited for."""
    loop = asyncio.get_running_loop()
    await asyncio.sleep(0)
    while loop._ready:  # type: ignore[attr-defined]  # asyncio reports it nowhere else
        await asyncio.sleep(0)


async def settle(app: App[Any]) -> None:
    """All that Textual puts off until the next frame, a 60th of a second away, is done: layouts, paint, callbacks."""
    await until_nothing_is_ready()
    while app.is_running and app.screen_stack and (await has_followed_resize(app) or has_frame_due(app.screen)):
        app.screen._on_timer_update()
        await until_nothing_is_ready()


async def has_followed_resize(app: App[Any]) -> bool:
    """Whether a timer for changes of size was running, which is over now; one that Textual has dropped never fires."""
    timer = app._resize_timer
    if timer is None or timer._task is None or timer._task.done():
        return False
    await asyncio.wait([timer._task])
    return True


def has_frame_due(screen: Screen[Any]) -> bool:
    """Whether the timer for frames has anything to do."""
    return bool(
        screen._layout_required
        or screen._scroll_required
        or screen._repaint_required
        or screen._recompose_required
        or screen._dirty_widgets
        or screen._callbacks
    )


async def pause(pilot: Pilot[Any], delay: float = 0.0) -> None:
    """As Pilot.pause, but until nothing at all is due."""
    await asyncio.sleep(delay)
    await settle(pilot.app)


async def until_shown(read: Callable[[], Awaitable[str]], words: str | Callable[[str], bool]) -> str:
    """What a screen shows as soon as it shows these words: other threads bring them."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        text = await read()
        if words in text if isinstance(words, str) else words(text):
            return text
        assert time.monotonic() < deadline, text
        await asyncio.sleep(0.02)


def drop_picture(screen: Screen[Any]) -> None:
    """As Screen._compositor_refresh, without composing the picture."""
    app = screen.app
    if screen is app.screen:
        visible_screen_stack.set(app._background_screens)
        screen._compositor._dirty_regions.clear()
        screen._dirty_widgets.clear()
        app._update_mouse_over(screen)
    else:
        compositor_refresh(screen)
