"""The screen as plain text, compared with a file: UPDATE_SNAPSHOTS=1 writes the files again."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

from textual.app import App
from textual.pilot import Pilot

FOLDER = Path(__file__).parent / "snapshots"
MOST_ROUNDS = 50  # of work that Textual puts off until the next refresh: a few, unless something redraws for ever
FRAME_SECONDS = 0.02  # from one refresh by Textual's own timer to the next, and a little more
READING_SECONDS = 0.04  # for a thread that reads a file; a test that needs more waits for what it shows
BLANK_LOOKS = 10


async def settled_text(pilot: Pilot[Any]) -> str:
    """What the terminal shows once nothing is left to do for Textual: handle a message, lay out, or paint.

    A blank screen is looked at more often, for it may not have been drawn yet.
    """
    await settle(pilot)
    text = screen_text(pilot.app)
    for _ in range(BLANK_LOOKS):
        if text.strip():
            break
        await asyncio.sleep(FRAME_SECONDS)
        await settle(pilot)
        text = screen_text(pilot.app)
    return text


async def settle(pilot: Pilot[Any]) -> None:
    """Do what Textual would do at its next refreshes, until there is nothing."""
    await until_files_are_read()
    for _ in range(MOST_ROUNDS):
        await pilot.pause()
        if not has_more(pilot.app):
            return
    await asyncio.sleep(FRAME_SECONDS)


async def until_files_are_read() -> None:
    """Threads of the loop that read files have done so, unless that takes long."""
    executor = asyncio.get_running_loop()._default_executor  # type: ignore[attr-defined]
    end = time.monotonic() + READING_SECONDS
    while executor is not None and executor._idle_semaphore._value < len(executor._threads) and time.monotonic() < end:
        await asyncio.sleep(0.002)


def has_more(app: App[Any]) -> bool:
    """Whether a callback is due, or the screen on top wants another refresh."""
    screen = app.screen
    waits = screen._layout_required or screen._scroll_required or screen._repaint_required or screen._recompose_required
    return bool(waits or screen._callbacks or screen._dirty_widgets or asyncio.get_running_loop()._ready)  # type: ignore[attr-defined]


def screen_text(app: App[Any]) -> str:
    """What the screen on top shows, without the blanks at line ends.

    Of what lies behind a dialog nothing: Textual draws it only when it paints before it is asked here.
    """
    compositor = app.screen._compositor
    lines = ["".join(segment.text for segment in strip) for strip in compositor.render_strips()]
    if app.screen.is_modal:
        own = [region for widget, (region, _) in compositor.visible_widgets.items() if widget is not app.screen]
        lines = [
            "".join(char if any(region.contains(x, y) for region in own) else " " for x, char in enumerate(line))
            for y, line in enumerate(lines)
        ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def check(name: str, text: str) -> None:
    """The text is that of the file `name`."""
    path = FOLDER / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(text)
    assert path.exists(), f"{path} is missing: run the test with UPDATE_SNAPSHOTS=1 and look at the file"
    assert text.splitlines() == path.read_text().splitlines(), f"the screen differs from {path}"
