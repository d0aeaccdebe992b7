"""The settings of a run, and how those of another run differ."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import RunView
from rl_tui.tui.drawing.glyphs import Glyphs
from rl_tui.tui.drawing.lines import Line, Span, Tone, cells, line
from rl_tui.tui.drawing.text import fit, fit_path
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.panes.list import Entry, ListPane
from rl_tui.tui.runs.configurations import KeyPath, Setting

SIGNS: dict[str, tuple[str, Tone]] = {"other": ("~", "warning"), "here": ("+", "good"), "there": ("-", "bad")}


class ConfigurationList(ListPane):
    """A line per setting. What it shows is set by its screen; words: shown in place of settings."""

    topic = "configuration"
    seconds = math.inf

    def __init__(self) -> None:
        super().__init__()
        self.settings: Sequence[Setting] = ()
        self.other = ""  # the run it is compared with
        self.words = ""
        self.has_differences_only = False

    def inputs(self, frame: Frame) -> object:
        """What the screen has set, and what was changed since the start."""
        changed = changed_values(frame.view)
        return super().inputs(frame), id(self.settings), self.other, self.words, self.has_differences_only, changed

    def heading(self, frame: Frame) -> str:
        """Whose configuration, compared with whose."""
        dot, run = f" {frame.glyphs.dot} ", frame.view.run
        name = f"Configuration{dot}{safe_text(run.run_id)}" if run is not None else "Configuration"
        if self.words or not self.settings:
            return name
        if not self.other:
            hidden = ", unchanged hidden" if self.has_differences_only else ""
            return f"{name}{dot}{len(self.settings)} settings{hidden}"
        number_of = sum(setting.here != setting.there for setting in self.settings)
        counted = f"{number_of or 'none'} of {len(self.settings)} differ"
        hidden = ", others hidden" if self.has_differences_only else ""
        return f"{name}{dot}there: {safe_text(self.other)}{dot}{counted}{hidden}"

    def entries(self, frame: Frame) -> Sequence[Entry]:
        """One per setting."""
        changed = changed_values(frame.view)
        made: list[Entry] = []
        before: KeyPath = ()
        for setting in () if self.words else self.settings:
            kind, live = self._kind(setting), changed.get(setting.path, "")
            if self.has_differences_only and not kind and not live:
                continue
            made.append(setting_entry(setting, kind, live, before, frame.glyphs))
            before = setting.path
        return made

    def empty(self, frame: Frame) -> str:
        """Why there is nothing."""
        return self.words or "nothing differs, and nothing was changed while training; D shows all"

    def _kind(self, setting: Setting) -> str:
        if not self.other or setting.here == setting.there:
            return ""
        return "there" if setting.here is None else "here" if setting.there is None else "other"


def changed_values(view: RunView) -> dict[KeyPath, str]:
    """What was changed while training and is used now, by the setting's path."""
    return {
        ("behaviors", safe_text(behavior.name), "hyperparameters", *event.name.split(".")): f"{event.new:g}"
        for behavior in view.behaviors.values()
        for _, event in behavior.changes
    }


def setting_entry(setting: Setting, kind: str, live: str, before: KeyPath, glyphs: Glyphs) -> Entry:
    """Its line; the keys that the line before has as well are dim. kind: of SIGNS, "" where nothing differs."""
    words = {"other": f"there: {setting.there}", "here": "only here", "there": "only there"}.get(kind, "")
    value = setting.there if setting.here is None else setting.here
    path = ".".join(setting.path)
    text = f"{path}: {value}" + (f" (now {live})" if live else "") + (f" ({words})" if words else "")
    shared = sum(1 for _ in _shared(setting.path[:-1], before))

    def draw(width: int) -> Line:
        sign, tone = SIGNS.get(kind, (" ", "text"))
        notes = line(
            Span(f" {glyphs.dot} now {live}" if live else "", "accent"),
            Span(f" {glyphs.dot} {words}" if words else "", tone),
        )
        value_room = max(12, width - cells(notes) - min(len(path), width // 2) - 4)
        shown = Span(fit(str(value), value_room, glyphs.ellipsis), tone if kind else "strong")
        room = max(8, width - len(shown.text) - cells(notes) - 4)
        fitting = fit_path(path, room, glyphs.ellipsis)
        known = len(".".join(setting.path[:shared])) + 1 if shared and fitting == path else 0
        keys = Span(fitting[:known], "dim"), Span(f"{fitting[known:]}: ")
        return line(Span(f"{sign} ", tone), *keys, shown, *notes)

    return Entry(path, text, draw)


def _shared(path: KeyPath, before: KeyPath) -> Sequence[str]:
    same = []
    for mine, theirs in zip(path, before, strict=False):
        if mine != theirs:
            break
        same.append(mine)
    return same
