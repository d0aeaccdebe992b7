"""The checkpoint that a user names: newest, best, or by its step."""

from __future__ import annotations

from pathlib import Path

from rl_tui.engine.errors import CheckpointError
from rl_tui.engine.storage.checkpoints import CheckpointStore


def find_checkpoint(store: CheckpointStore, which: str, asked: str) -> tuple[Path, tuple[str, ...]]:
    """Its path, and the reasons why newer ones than the newest that verifies were skipped.

    asked: what has named it, for the message. Raises CheckpointError, naming the steps that there are.
    """
    skipped: tuple[str, ...] = ()
    match which:
        case "newest":
            newest = store.newest_valid()
            path, skipped = newest.path, newest.skipped
        case "best":
            best = store.best()
            path = None if best is None else best.path
        case step:
            path = next((one.path for one in reversed(store.list()) if one.step == int(step)), None)
    if path is None:
        steps = ", ".join(str(one.step) for one in store.list()) or "none"
        place = f"at step {which}" if which.isdecimal() else f"({which})"
        raise CheckpointError(f"{asked}: {store.name} has no checkpoint {place}; available: {steps}")
    return path, skipped
