"""Folders of the user's own files: configuration, and what the screen saves (XDG)."""

from __future__ import annotations

import os
from pathlib import Path


def config_folder() -> Path:
    """The folder of keys.yaml; it need not exist."""
    return _base("XDG_CONFIG_HOME", ".config") / "rl-tui"


def state_folder() -> Path:
    """The folder of preferences and screenshots; it need not exist."""
    return _base("XDG_STATE_HOME", ".local/state") / "rl-tui"


def seen_from_here(path: str) -> str:
    """The path relative to the folder where the program was started, if it is in there."""
    here = os.environ.get("PWD", "")  # an environment may have changed the working directory
    return os.path.relpath(path, here) if here and path.startswith(here.rstrip("/") + "/") else path


def _base(variable: str, default: str) -> Path:
    named = Path(os.environ.get(variable, ""))
    return named if named.is_absolute() else Path.home() / default  # the standard ignores relative ones
