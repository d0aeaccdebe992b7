"""The three keys that a new user needs, shown until one of them is pressed."""

from __future__ import annotations

import asyncio

from rl_tui.tui.drawing.lines import Line, Span, line, pack
from rl_tui.tui.keys.keymap import Keymap
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.state.preferences import Preferences

WORDS = {  # by the ids of the commands: in full, and where space is short
    "help": ("shows every key", "keys"),
    "checkpoint": ("saves a checkpoint", "save"),
    "quit": ("asks how to leave", "leave"),
}
SAME_USE = ("ctrl+c", "ctrl+q")  # the same as the last of them
NARROW = 70


class FirstKeys:
    """Owned by the app. Without preferences no user is new."""

    def __init__(self, preferences: Preferences | None, keymap: Keymap) -> None:
        self._preferences = preferences
        self._keys = {*SAME_USE, *(key for id in WORDS for key in keymap.of_id(id).keys)}
        self.are_shown = preferences is not None and not preferences.knows_keys()

    def on_key(self, key: str) -> None:
        """Hide the line after one of its keys. Call it in the app's loop."""
        if self.are_shown and self._preferences is not None and key in self._keys:
            self.are_shown = False
            asyncio.get_running_loop().run_in_executor(None, self._preferences.save_keys_known)


def first_keys_line(frame: Frame, width: int) -> Line:
    """Each key with what it does."""
    parts = []
    for id, (words, short) in WORDS.items():
        key = frame.keymap.of_id(id)
        if not (key.changes and frame.refuses):
            shown = short if width < NARROW else words
            parts.append(line(Span(f" {key.shown.partition(', ')[0]}", "accent"), f" {shown}"))
    return pack(parts, width, gap=2)
