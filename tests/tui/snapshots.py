"""The screen as plain text, compared with a file: UPDATE_SNAPSHOTS=1 writes the files again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from textual.app import App
from textual.geometry import Region
from textual.pilot import Pilot

from tests.golden_files import check_file
from tests.tui.settling import settle

FOLDER = Path(__file__).parent / "snapshots"


async def settled_text(pilot: Pilot[Any]) -> str:
    """What the terminal shows once nothing is due any more."""
    await settle(pilot.app)
    return screen_text(pilot.app)


def screen_text(app: App[Any]) -> str:
    """What the screen on top shows, without the blanks at line ends.

    Of what lies behind a dialog nothing: Textual draws it only when it paints before it is asked here.
    """
    compositor = app.screen._compositor
    lines = ["".join(segment.text for segment in strip) for strip in compositor.render_strips()]
    if app.screen.is_modal:
        own = [region for widget, (region, _) in compositor.visible_widgets.items() if widget is not app.screen]
        lines = [
            without_others(line, [region for region in own if y in region.line_range]) for y, line in enumerate(lines)
        ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def without_others(line: str, regions: list[Region]) -> str:
    """Blanks where none of these regions is."""
    shown = [" "] * len(line)
    for region in regions:
        start = max(0, region.x)
        shown[start : region.right] = line[start : region.right]
    return "".join(shown)


def check(name: str, text: str) -> None:
    """The text is that of the file `name`."""
    check_file(FOLDER / f"{name}.txt", text)
