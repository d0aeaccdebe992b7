"""The bottom line: the keys that work now."""

from __future__ import annotations

import math

from tui.keymap import Key
from tui.lines import Line, Span, line
from tui.panes.base import Frame, Pane, is_over


class KeysLine(Pane):
    """As many keys as fit; the less important ones go first, and the help screen has them all."""

    seconds = math.inf

    def inputs(self, frame: Frame) -> object:
        """Which keys have a use."""
        return (
            frame.view.run is None,
            len(frame.view.behaviors) > 1,
            frame.places,
            frame.refuses,
            frame.state.chart.crosshair is None,
        )

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """One line."""
        return [keys_line(frame, width)]


def keys_line(frame: Frame, width: int) -> Line:
    """Key and word, the most important ones first."""
    words = {"pause": "resume"} if frame.behavior and frame.behavior.state == "paused" else {}
    if frame.is_frozen:
        words["freeze view"] = "unfreeze"
    keys = sorted(useful_keys(frame), key=lambda key: key.footer_rank or 0)
    shown: list[tuple[str, str]] = []
    flag = Span(" READ ONLY " if frame.refuses else "", "flag")
    room = width - len(flag.text)
    for key in keys:
        entry = key.shown.partition(", ")[0], words.get(key.label, key.label)
        room -= len(entry[0]) + len(entry[1]) + 3
        if room < 0:
            break
        shown.append(entry)
    return line(flag, *(span for key, word in shown for span in (Span(f" {key}", "accent"), Span(f" {word} ", "dim"))))


def useful_keys(frame: Frame) -> list[Key]:
    """The keys for the bottom line that have a use in this frame."""
    runs = frame.view.run is not None and not is_over(frame.view) and not frame.refuses
    has_several = len(frame.view.behaviors) > 1
    return [
        key
        for key in frame.keymap.of(*frame.places)
        if key.footer_rank is not None
        and (runs or not (key.needs_run or key.changes))
        and (has_several or not key.needs_several)
    ]
