"""The bottom line: the keys that work now."""

from __future__ import annotations

import math
from collections.abc import Sequence

from textual import events

from rl_tui.tui.drawing.lines import Line, Span, line
from rl_tui.tui.keys.keymap import Key, Place
from rl_tui.tui.panes.base import Frame, Pane
from rl_tui.tui.runs.browsing import is_of_no_run

FIRST = 2  # ranks up to this one, quit, help and back, stand first on every screen


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
            frame.controller,
            frame.state.chart.crosshair is None,
            frame.can_watch,
            bool(frame.view.workers),
            bool(frame.view.ranks.statuses),
            any(behavior.plays_itself for behavior in frame.view.behaviors.values()),
            bool(frame.state.marked),
        )

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """One line."""
        return [keys_line(frame, width)]

    def on_click(self, event: events.Click) -> None:
        """A click on a key does what the key does."""
        offset = event.get_content_offset(self)
        if self._frame is None or offset is None:
            return
        end = len(flag(self._frame).text)
        for key, shown, word in fitting_keys(self._frame, self.size.width):
            end += entry_width(shown, word)
            if offset.x < end:
                if "{n}" not in key.action:
                    self.app.simulate_key(key.keys[0])
                return


def keys_line(frame: Frame, width: int) -> Line:
    """Key and word, the most important ones first."""
    entries = fitting_keys(frame, width)
    words = (span for _, key, word in entries for span in (Span(f" {key}", "accent"), Span(f" {word} ", "dim")))
    return line(flag(frame), *words)


def flag(frame: Frame) -> Span:
    """Where nothing may be changed, that comes first."""
    words = " READ ONLY " if frame.refuses else ""
    return Span(" VIEWER " if frame.controller else words, "flag")


def fitting_keys(frame: Frame, width: int) -> list[tuple[Key, str, str]]:
    """Each with its key and its word as they are shown; those of the screen itself before those of every screen."""
    words = {"pause": "resume"} if frame.behavior and frame.behavior.state == "paused" else {}
    if frame.is_frozen:
        words["freeze view"] = "unfreeze"
    is_overview, is_play = "overview" in frame.places, "watch" in frame.places
    if "checkpoints" in frame.places:
        words["open"] = "details"
    if is_play:
        words["freeze view"] = "hold"
    if "runs" in frame.places and frame.state.marked:
        words["open"] = "compare"

    def order(key: Key) -> tuple[bool, bool, int]:
        rank = key.footer_rank or 0
        is_own = "run" not in key.places or is_overview or (is_play and key.id == "freeze")
        return rank > FIRST, not is_own, rank

    entries: list[tuple[Key, str, str]] = []
    room = width - len(flag(frame).text)
    for key in sorted(useful_keys(frame), key=order):
        shown, word = key.shown.partition(", ")[0], words.get(key.label, key.label)
        room -= entry_width(shown, word)
        if room < 0:
            break
        entries.append((key, shown, word))
    return entries


def entry_width(shown: str, word: str) -> int:
    """Cells of one key with its word and the blanks around them."""
    return len(shown) + len(word) + 3


def useful_keys(frame: Frame) -> list[Key]:
    """The keys for the bottom line that have a use in this frame."""
    return [
        key
        for key in keys_with_use(frame, frame.places)
        if key.footer_rank is not None
        and (not key.footer_places or not set(frame.places).isdisjoint(key.footer_places))
    ]


def keys_with_use(frame: Frame, places: Sequence[Place]) -> list[Key]:
    """The keys of these places, the nearest first, that do something in this frame."""
    runs = frame.view.run is not None and not frame.view.is_over and not frame.refuses
    has_several = len(frame.view.behaviors) > 1
    shadowed = frame.keymap.shadowed(*places)
    return [
        key
        for key in frame.keymap.of(*places)
        if key not in shadowed
        and (runs or not (key.needs_run or key.changes))
        and (has_several or not key.needs_several)
        and (key.id != "back" or "overview" not in places)
        and (key.id != "lessons" or frame.view.parameters)
        and (key.id != "workers" or frame.view.workers)
        and (key.id != "ranks" or frame.view.ranks.statuses)
        and (key.id != "league" or any(behavior.plays_itself for behavior in frame.view.behaviors.values()))
        and (key.id != "watch" or frame.can_watch)
        and (key.id != "take-control" or frame.controller)
        and (not is_of_no_run(frame.view) or works_without_run(key))
    ]


def works_without_run(key: Key) -> bool:
    """Whether the command does something on a screen without a run, which shows the runs of a folder."""
    return key.id != "freeze" and (not key.action.startswith("open_screen") or key.id == "runs")
