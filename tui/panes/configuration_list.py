"""The settings of a run as a tree: first what differs from the defaults and from another run, then every section."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rl_tui.engine.session.text import safe_text
from rl_tui.tui.drawing.lines import Line
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.panes.list import Entry, ListPane
from rl_tui.tui.panes.setting_row import Changes, HeadingRow, SettingRow, changes_of, columns_of, row_entry
from rl_tui.tui.runs.configurations import KeyPath, Setting
from rl_tui.tui.runs.setting_tree import Section, opened_by_room, sections_of

DEFAULTS, OTHER_RUN = ("# defaults",), ("# other run",)  # the sections of what differs


@dataclass(frozen=True, slots=True)
class Picked:
    """A section of settings from everywhere in the file, each with its whole path."""

    path: KeyPath
    title: str
    settings: Sequence[Setting]


class ConfigurationList(ListPane):
    """A line per section and setting. What it shows is set by its screen; words: shown in place of settings.

    Sections are open as far as there is room, until the user opens or closes them. A filter looks into all of them.
    """

    topic = "configuration"
    seconds = math.inf

    def __init__(self) -> None:
        super().__init__()
        self.settings: Sequence[Setting] = ()
        self.added: Sequence[Setting] = ()  # sections that are missing by default
        self.has_defaults = False  # whether they are known
        self.other = ""  # the run it is compared with
        self.words = ""
        self.has_differences_only = False
        self._chosen: dict[KeyPath, bool] = {}  # the sections that the user has opened or closed
        self._opened: set[KeyPath] = set()  # those for which there was room
        self._opened_for: object = None
        self._rows: Sequence[HeadingRow | SettingRow] = ()  # as shown last

    def inputs(self, frame: Frame) -> object:
        """What the screen has set, what is open, and what was changed since the start."""
        shown = id(self.settings), self.other, self.words, self.has_differences_only, dict(self._chosen)
        return super().inputs(frame), shown, changes_of(frame.view)

    def heading(self, frame: Frame) -> str:
        """Whose configuration, and how much of it differs."""
        dot, run = f" {frame.glyphs.dot} ", frame.view.run
        name = f"Configuration{dot}{safe_text(run.run_id)}" if run is not None else "Configuration"
        if self.words or not self.settings:
            return name
        total = len(self.settings)
        hidden = ", others hidden" if self.has_differences_only else ""
        if self.other:
            number_of = sum(setting.here != setting.there for setting in self.settings)
            return f"{name}{dot}there: {safe_text(self.other)}{dot}{number_of or 'none'} of {total} differ{hidden}"
        if not self.has_defaults:
            return f"{name}{dot}{total} settings{hidden}"
        number_of = len(self._marked(changes_of(frame.view)))
        return f"{name}{dot}{number_of or 'none'} of {total} differ from the defaults{hidden}"

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """Sections are opened for the height that the list has first, not for what is left beside a text in full."""
        wanted = self.app.size, id(self.settings)
        if self.settings and wanted != self._opened_for:
            picked = [*self._rows_of_picked(changes_of(frame.view))]
            self._opened = opened_by_room(sections_of(self.settings), height - len(picked))
            self._opened_for = wanted
        return super().lines(frame, width, height)

    def entries(self, frame: Frame) -> Sequence[Entry]:
        """Sections and settings; where a filter looks for settings, these alone."""
        if self.words:
            return []
        changed = changes_of(frame.view)
        if frame.state.filters.get(self.topic):
            rows: list[HeadingRow | SettingRow] = [self._whole_row(setting, changed, 0) for setting in self.settings]
        else:
            rows = [*self._rows_of_picked(changed)]
            if not self.has_differences_only:
                for section in sections_of(self.settings):
                    rows += self._rows_of(section, changed, 0)
        self._rows, columns = rows, columns_of(rows)
        return [row_entry(row, columns, frame.glyphs) for row in rows]

    def empty(self, frame: Frame) -> str:
        """Why there is nothing."""
        key = frame.keymap.of_id("changed-only").shown
        return self.words or f"nothing differs, and nothing was changed while training; {key} shows all"

    def is_open(self, path: KeyPath) -> bool:
        """Whether what is in that section is shown."""
        return self._chosen.get(path, path in self._opened or path in (DEFAULTS, OTHER_RUN))

    def toggle(self, entry: Entry) -> bool:
        """Open the section of that entry, or close it; False where the entry is a setting."""
        row = self._row_of(entry)
        if not isinstance(row, HeadingRow):
            return False
        self._chosen[row.path] = not row.is_open
        return True

    def open_section(self, entry: Entry) -> None:
        """Open the section of that entry; nothing happens to a setting."""
        row = self._row_of(entry)
        if isinstance(row, HeadingRow):
            self._chosen[row.path] = True

    def close_section(self, entry: Entry) -> None:
        """Close the section of that entry, or else the one around it, which then has the cursor."""
        row = self._row_of(entry)
        if row is not None and not (isinstance(row, HeadingRow) and row.is_open):
            row = self._around(row)
        if isinstance(row, HeadingRow) and self._frame is not None:
            self._chosen[row.path] = False
            self._frame.state.cursors[self.topic] = row.key

    def _row_of(self, entry: Entry) -> HeadingRow | SettingRow | None:
        return next((row for row in self._rows if row.key == entry.key), None)

    def _around(self, row: HeadingRow | SettingRow) -> HeadingRow | None:
        above = reversed(self._rows[: self._rows.index(row)])
        return next((each for each in above if isinstance(each, HeadingRow) and each.depth < row.depth), None)

    def _picked(self, changed: Changes) -> Iterator[Picked]:
        """What differs from the other run, then what differs from the defaults or was changed while training."""
        if self.other:
            differing = [replace(s, default=None) for s in self.settings if s.here != s.there]
            yield Picked(OTHER_RUN, f"Differs from {safe_text(self.other)}", differing)
        title = "Differs from the defaults" if self.has_defaults else "Changed while training"
        yield Picked(DEFAULTS, title, self._marked(changed))

    def _marked(self, changed: Changes) -> list[Setting]:
        """What differs from the defaults or was changed, with the sections that are missing by default, in order."""
        marked = [s for s in (*self.added, *self.settings) if s.default is not None or s.path in changed.live]
        return [replace(setting, is_compared=False) for setting in sorted(marked, key=self._place)]

    def _place(self, setting: Setting) -> int:
        """Of a setting, or of a section's first setting, in the file."""
        places = (at for at, each in enumerate(self.settings) if each.path[: len(setting.path)] == setting.path)
        return next(places, len(self.settings))

    def _rows_of_picked(self, changed: Changes) -> Iterator[HeadingRow | SettingRow]:
        for picked in self._picked(changed):
            if not picked.settings:
                continue
            is_open = self.is_open(picked.path)
            words = "" if is_open else num_settings(len(picked.settings))
            yield HeadingRow(picked.path, picked.title, words, 0, is_open)
            if is_open:
                for setting in picked.settings:
                    yield self._whole_row(setting, changed, 1, picked.path)

    def _rows_of(self, section: Section, changed: Changes, depth: int) -> Iterator[HeadingRow | SettingRow]:
        is_open = self.is_open(section.path)
        yield HeadingRow(section.path, section.title, "" if is_open else self._inside(section), depth, is_open)
        if not is_open:
            return
        for setting in section.settings:
            live, source = changed.live.get(setting.path), changed.source(setting.path)
            yield SettingRow(setting, setting.path[-1], 0, depth + 1, live, source=source)
        for inner in section.sections:
            yield from self._rows_of(inner, changed, depth + 1)

    def _inside(self, section: Section) -> str:
        """How many settings it has, and how many of them differ."""
        settings = [*section.every_setting()]
        number_of = sum(s.default is not None or (s.is_compared and s.here != s.there) for s in settings)
        words = num_settings(len(settings))
        return f"{words}, {number_of} differ" if number_of else words

    def _whole_row(self, setting: Setting, changed: Changes, depth: int, where: KeyPath = ()) -> SettingRow:
        """With its path as its name, but for what is the same for all behaviors."""
        skipped = 0
        if setting.path[0] == "behaviors" and len(setting.path) > 2:
            behaviors = {each.path[1] for each in self.settings if each.path[0] == "behaviors" and len(each.path) > 1}
            skipped = 1 if len(behaviors) > 1 else 2
        name = ".".join(setting.path[skipped:])
        live, source = changed.live.get(setting.path), changed.source(setting.path)
        return SettingRow(setting, name, len(name) - len(setting.path[-1]), depth, live, where, source)


def num_settings(number_of: int) -> str:
    """Their number in words."""
    return "1 setting" if number_of == 1 else f"{number_of} settings"
