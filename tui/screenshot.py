"""The screen as it is, in two files: a picture and plain text."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from textual.app import App

from engine.session.text import safe_text
from tui.user_folders import state_folder


async def save_screenshot(app: App[Any], run_folder: Path | None) -> str:
    """The picture and the text are in the run's folder, or in that of the user's state where none is; returns where.

    Taking them holds up the app for about 20 ms; they are written in a thread. Raises OSError if they cannot be.
    """
    picture, text = app.export_screenshot(title=safe_text(app.title)), as_text(app)
    return await asyncio.to_thread(_write, run_folder, picture, text)


def as_text(app: App[Any]) -> str:
    """What the terminal shows, without the blanks at line ends."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips) + "\n"


def _write(run_folder: Path | None, picture: str, text: str) -> str:
    base = run_folder if run_folder is not None and run_folder.is_dir() else state_folder()
    folder = base / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / time.strftime("rl-tui-%Y%m%d-%H%M%S.svg")
    path.write_text(picture, encoding="utf-8")
    path.with_suffix(".txt").write_text(text, encoding="utf-8")
    return f".txt and {path}"  # a path at the end is shortened from its left where it is too long
