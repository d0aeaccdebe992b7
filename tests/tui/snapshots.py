"""The screen as plain text, compared with a file: UPDATE_SNAPSHOTS=1 writes the files again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from textual.app import App
from textual.pilot import Pilot

from tests.golden_files import check_file

FOLDER = Path(__file__).parent / "snapshots"
ROUNDS = 3  # of work that Textual puts off until the next refresh: a screen is shown, laid out, and then drawn
FRAME_SECONDS = 0.02  # from one refresh by Textual's own timer to the next, and a little more
BLANK_LOOKS = 10


async def settled_text(pilot: Pilot[Any]) -> str:
    """What the terminal shows once two looks in a row see the same: Textual lays out and paints in its own time.

    A blank screen is looked at more often, for it may not have been drawn yet.
    """
    text, newer, looks = "", screen_text(pilot.app), 0
    while newer != text or (looks < BLANK_LOOKS and not text.strip()):
        looks += 1
        await asyncio.sleep(FRAME_SECONDS)
        for _ in range(ROUNDS):
            await pilot.pause()
        text, newer = newer, screen_text(pilot.app)
    return text


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
    check_file(FOLDER / f"{name}.txt", text)
