"""The settings that a run has in its own file, short enough for a list of runs."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import JsonValue

from rl_tui.engine.config.changed_settings import changed_settings
from rl_tui.engine.config.loading import LARGEST_FILE, parse_config
from rl_tui.engine.errors import RlTuiError
from rl_tui.engine.process.files import open_regular
from rl_tui.engine.storage.file_names import CONFIGURATION


def settings_of_run(folder: Path) -> dict[str, JsonValue] | None:
    """The settings of the run in that folder that are not the defaults; None where its file cannot be read.

    Nothing else that the file may name is a reason to fail: a list of runs may hold those of other versions, and of
    packages that are not installed.
    """
    try:
        with os.fdopen(open_regular(folder / CONFIGURATION, follows_links=True), "rb") as file:
            content = file.read(LARGEST_FILE)
        return changed_settings(parse_config(content, CONFIGURATION))
    except (OSError, RlTuiError):
        return None
