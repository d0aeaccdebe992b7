"""What a screen is called where several show one run."""

from __future__ import annotations

import os

from rl_tui.engine.process.vital_signs import process_id


def screen_name() -> str:
    """Its terminal, as `who` lists it, and its process."""
    try:
        terminal = os.ttyname(2).removeprefix("/dev/")
    except OSError:
        terminal = "a screen"
    return f"{terminal} (process {process_id()})"
