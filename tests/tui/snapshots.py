"""The screen as plain text, compared with a file: UPDATE_SNAPSHOTS=1 writes the files anew."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from textual.app import App
from textual.pilot import Pilot

FOLDER = Path(__file__).parent / "snapshots"


async def settled_text(pilot: Pilot[Any]) -> str:
    """What the terminal shows once two looks in a row see the same: Textual lays out and paints in its own time."""
    text, newer = "", screen_text(pilot.app)
    while newer != text:
        await pilot.pause()
        text, newer = newer, screen_text(pilot.app)
    return text


def screen_text(app: App[Any]) -> str:
    """What the terminal shows, without the blanks at line ends."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips) + "\n"


def check(name: str, text: str) -> None:
    """The text is that of the file `name`."""
    path = FOLDER / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(text)
    assert path.exists(), f"{path} is missing: run the test with UPDATE_SNAPSHOTS=1 and look at the file"
    assert text == path.read_text(), f"the screen differs from {path}"
