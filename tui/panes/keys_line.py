"""The bottom line: the keys that work now."""

from __future__ import annotations

import math

from tui.keymap import footer_keys
from tui.lines import Line, Span, line
from tui.panes.base import Frame, Pane, is_over


class KeysLine(Pane):
    """As many keys as fit; the less important ones go first, and the help screen has them all."""

    seconds = math.inf

    def inputs(self, frame: Frame) -> object:
        """Which keys have a use."""
        return frame.view.run is None, len(frame.view.behaviors) > 1

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """One line."""
        return [keys_line(frame, width)]


def keys_line(frame: Frame, width: int) -> Line:
    """Key and word, in the order of the keymap."""
    runs, has_several = frame.view.run is not None and not is_over(frame.view), len(frame.view.behaviors) > 1
    keys = [key for key in footer_keys() if (runs or not key.needs_run) and (has_several or not key.needs_several)]
    words = {"pause": "resume"} if frame.behavior and frame.behavior.state == "paused" else {}
    if frame.is_frozen:
        words["freeze view"] = "unfreeze"
    shown = [(key, words.get(key.label, key.label)) for key in keys]
    while shown and sum(len(key.shown) + len(word) + 3 for key, word in shown) > width:
        shown.remove(max(shown, key=lambda entry: entry[0].footer_rank or 0))
    return line(*(span for key, word in shown for span in (Span(f" {key.shown}", "accent"), Span(f" {word} ", "dim"))))
