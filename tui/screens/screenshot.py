"""Screenshots: the screen as a picture and as plain text, and its charts as a table."""

from __future__ import annotations

import asyncio
import csv
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textual.app import App

from rl_tui.engine.process.files import open_regular
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.charts.figure import Figure
from rl_tui.tui.charts.table import rows_of
from rl_tui.tui.state.user_folders import state_folder
from rl_tui.tui.textual_private import rendered_strips


async def save_screenshot(app: App[Any], run_folder: Path | None, figures: Sequence[Figure] = ()) -> str:
    """Write the picture, the text and the figures as CSV into the run's folder, or without one into that of the user's
    state; returns where.

    Blocks the app for about 20 ms, and writes in a thread. Raises OSError if that fails.
    """
    picture, text = app.export_screenshot(title=safe_text(app.title)), as_text(app)
    return await asyncio.to_thread(_write, run_folder, picture, text, figures)


def as_text(app: App[Any]) -> str:
    """What the terminal shows, without the blanks at line ends."""
    strips = rendered_strips(app.screen)
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips) + "\n"


def _write(run_folder: Path | None, picture: str, text: str, figures: Sequence[Figure]) -> str:
    base = run_folder if run_folder is not None and run_folder.is_dir() else state_folder()
    folder = base / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / time.strftime("rl-tui-%Y%m%d-%H%M%S.svg")
    for file_path, content in ((path, picture), (path.with_suffix(".txt"), text)):
        with open(file_path, "w", encoding="utf-8", opener=open_regular) as file:
            file.write(content)
    if figures:
        with open(path.with_suffix(".csv"), "w", encoding="utf-8", newline="", opener=open_regular) as file:
            csv.writer(file).writerows(rows_of(figures))
    return f"{'.csv, ' if figures else ''}.txt and {path}"  # a path at the end is shortened from its left
