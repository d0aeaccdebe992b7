"""Where the user's own files are: choices that he wrote down, and what the screen remembers for him (XDG)."""

from __future__ import annotations

import os
from pathlib import Path


def config_folder() -> Path:
    """The folder of keys.yaml; it need not exist."""
    return _base("XDG_CONFIG_HOME", ".config") / "rl-tui"


def state_folder() -> Path:
    """The folder of what is remembered from one start to the next; it need not exist."""
    return _base("XDG_STATE_HOME", ".local/state") / "rl-tui"


def seen_from_here(path: str) -> str:
    """The path as the user would type it in the folder where the program was started, or the whole of it elsewhere."""
    here = os.environ.get("PWD", "")  # the working folder itself is whatever an environment has made it
    return os.path.relpath(path, here) if here and path.startswith(here.rstrip("/") + "/") else path


def _base(variable: str, default: str) -> Path:
    named = Path(os.environ.get(variable, ""))
    return named if named.is_absolute() else Path.home() / default  # the standard says to ignore relative ones
