"""A line of the configuration: a section, or a setting with its default, what it was changed to, where it is from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import RunView
from rl_tui.tui.drawing.glyphs import Glyphs
from rl_tui.tui.drawing.lines import Line, Span, Tone, cells, line
from rl_tui.tui.drawing.text import count, fit, fit_path, left, num_cells, time_of_day
from rl_tui.tui.panes.hyperparameter_list import OF_SIGNALS
from rl_tui.tui.panes.list import Entry
from rl_tui.tui.runs.configurations import KeyPath, Setting

SIGNS: dict[str, tuple[str, Tone]] = {  # by how a setting differs from that of another run, or from its default
    "other": ("~", "warning"), "here": ("+", "good"), "there": ("-", "bad"), "default": ("*", "accent"),
}  # fmt: skip
INDENT, SIGN_WIDTH, GAP = 2, 2, 2
WIDEST_VALUE = 14  # of a value that has words after it; a longer one moves these to the right
WIDEST_SOURCE = 15  # of a flag's name
NARROWEST = 60  # cells of a line that has a column for the source
NARROW, NARROW_SOURCE = 100, 5  # below so many cells it is kept as wide as "--set", and a time stands alone
PHRASES = {"file": "from the file", "preset": "from the preset", "profile": "from the profile"}


@dataclass(frozen=True, slots=True)
class LiveValue:
    """What a hyperparameter was changed to while training, at which step of its behavior, and at which time."""

    value: str
    step: int
    time: float


@dataclass(frozen=True, slots=True)
class Changes:
    """What the run itself knows of settings, by their paths: which were changed while training and are used now, and
    where they were set before."""

    live: Mapping[KeyPath, LiveValue]
    sources: Mapping[KeyPath, str]

    def source(self, path: KeyPath) -> str:
        """Where that was set, or a setting inside it; "" for a default."""
        inside = (source for each, source in self.sources.items() if each[: len(path)] == path)
        return self.sources.get(path) or next(inside, "")


@dataclass(frozen=True, slots=True)
class HeadingRow:
    """The line of a section. words: how much is in it; depth: how many sections it is inside of."""

    path: KeyPath
    title: str
    words: str
    depth: int
    is_open: bool

    @property
    def key(self) -> str:
        """Of its entry."""
        return f"section {'.'.join(self.path)}"


@dataclass(frozen=True, slots=True)
class SettingRow:
    """The line of a setting. name: what stands there of its path, whose first num_dim characters are dim; where: the
    section of what differs that it is in; () in the file's own; source: where it was set before the start, "" where it
    has its default."""

    setting: Setting
    name: str
    num_dim: int
    depth: int
    live: LiveValue | None
    where: KeyPath = ()
    source: str = ""

    @property
    def key(self) -> str:
        """Of its entry: a setting may be in several sections."""
        return ".".join((*self.where, *self.setting.path))

    @property
    def kind(self) -> str:
        """How it differs, of SIGNS; "" where it does not."""
        here, there = self.setting.here, self.setting.there
        if self.setting.is_compared and here != there:
            return "there" if here is None else "here" if there is None else "other"
        return "default" if self.setting.default is not None else ""

    @property
    def value(self) -> str:
        """In this run, or in the other where it is missing in this one."""
        return str(self.setting.there if self.setting.here is None else self.setting.here)

    @property
    def origin(self) -> str:
        """Where its value is from, in a word; "" for a default."""
        return self.source if self.live is None else f"changed {time_of_day(self.live.time, seconds=False)}"

    @property
    def notes(self) -> list[tuple[str, Tone]]:
        """What stands after the value: the other run's, what it was changed to and at which step, its default."""
        words: list[tuple[str, Tone]] = []
        kind = self.kind
        if kind in ("other", "here", "there"):
            text = {"here": "only here", "there": "only there"}.get(kind, f"there: {self.setting.there}")
            words.append((text, SIGNS[kind][1]))
        if self.live is not None:
            words.append((f"now {self.live.value} at {count(self.live.step)}", "accent"))
        if self.setting.default is not None:
            words.append((f"default {self.setting.default}", "dim"))
        return words

    @property
    def shorter_notes(self) -> Iterator[list[tuple[str, Tone]]]:
        """These, then what leaves room for the origin: without the default, and without the step of the change, whose
        time the origin has."""
        notes = self.notes
        yield notes
        if self.live is not None:
            notes = [note for note in notes if not note[0].startswith(("default ", "now "))]
            yield [*notes, (f"now {self.live.value} at {count(self.live.step)}", "accent")]
            yield [*notes, (f"now {self.live.value}", "accent")]


@dataclass(frozen=True, slots=True)
class Columns:
    """Cells that names, with their indentation, values, values with their notes, and origins take in all rows of a
    list."""

    name: int
    value: int
    noted: int
    origin: int


def columns_of(rows: Iterable[HeadingRow | SettingRow]) -> Columns:
    """As wide as the longest name, and as the longest of the short values that have words after them."""
    settings = [row for row in rows if isinstance(row, SettingRow)]
    name = max((num_cells(row.name) + INDENT * row.depth for row in settings), default=0)
    value = max((_value_width(row) for row in settings if row.notes), default=0)
    noted = max((max(value if row.notes else 0, _value_width(row)) + _width(row.notes) for row in settings), default=0)
    origin = min(WIDEST_SOURCE, max((num_cells(row.origin) for row in settings), default=0))
    return Columns(name, value, noted, origin)


def row_entry(row: HeadingRow | SettingRow, columns: Columns, glyphs: Glyphs) -> Entry:
    """The row as an entry of a list."""
    return _heading_entry(row, glyphs) if isinstance(row, HeadingRow) else _setting_entry(row, columns, glyphs)


def changes_of(view: RunView) -> Changes:
    """Those of a run."""
    live = {
        ("behaviors", safe_text(behavior.name), *_path_of(event.name)): LiveValue(f"{event.new:g}", event.step, at)
        for behavior in view.behaviors.values()
        for at, event in behavior.changes
    }
    return Changes(live, {tuple(map(safe_text, path)): source for path, source in view.sources.items()})


def _path_of(hyperparameter: str) -> list[str]:
    """From the behavior to the key that it was read from."""
    is_of_signal = hyperparameter.startswith(OF_SIGNALS)
    return hyperparameter.split(".") if is_of_signal else ["hyperparameters", *hyperparameter.split(".")]


def _heading_entry(row: HeadingRow, glyphs: Glyphs) -> Entry:
    sign = glyphs.opened if row.is_open else glyphs.closed
    words = f" {glyphs.dot} {row.words}" if row.words else ""

    def draw(width: int) -> Line:
        indent = " " * min(INDENT * row.depth, width // 2)
        title = Span(fit(row.title, max(1, width - len(indent) - SIGN_WIDTH), glyphs.ellipsis), "strong")
        room = max(0, width - len(indent) - SIGN_WIDTH - num_cells(title.text))
        return line(indent, Span(f"{sign} ", "dim"), title, Span(fit(words, room, glyphs.ellipsis), "dim"))

    return Entry(row.key, f"{row.title}{words}", draw)


def _setting_entry(row: SettingRow, columns: Columns, glyphs: Glyphs) -> Entry:
    path = ".".join(row.setting.path)
    plain: tuple[str, Tone] = (glyphs.changed, "accent") if row.live is not None else (" ", "text")
    words = [*(words for words, _ in row.notes), *([_phrase(row)] if row.origin else [])]
    text = f"{path}: {row.value}" + (f" ({'; '.join(words)})" if words else "")
    sign, tone = SIGNS.get(row.kind, plain)

    def draw(width: int) -> Line:
        indent = min(INDENT * row.depth, width // 4)
        column = max(8, min(columns.name, width * 5 // 9))
        start = SIGN_WIDTH + column + GAP  # of values
        has_origins = columns.origin > 0 and width >= NARROWEST
        kept = columns.origin if width >= NARROW else min(columns.origin, NARROW_SOURCE)
        end = min(start + columns.noted, width - kept - GAP) if has_origins else width
        room_for_notes = end - start - max(columns.value, _value_width(row))
        fitting = (notes for notes in row.shorter_notes if _width(notes) <= room_for_notes)
        notes = next(fitting, None) if has_origins and row.origin else row.notes
        has_origin = notes is not None and has_origins and row.origin != ""
        notes = row.notes if notes is None else notes
        name = fit_path(row.name, max(4, column - indent), glyphs.ellipsis)
        num_dim = row.num_dim if name == row.name else 0
        keys = Span(name[:num_dim], "dim"), left(name[num_dim:], max(0, column - indent - num_dim))
        after = [span for words, tone in notes for span in (Span(" " * GAP), Span(words, tone))]
        room = max(8, (end if has_origin else width) - start - cells(tuple(after)))
        value = fit(row.value, room, glyphs.ellipsis)
        if notes and num_cells(value) < columns.value:
            value = left(value, min(columns.value, room))
        shown = Span(value, "strong" if row.kind or row.live else "text")
        drawn = line(" " * indent, Span(f"{sign} ", tone), *keys, " " * GAP, shown, *after)
        if not has_origin:
            return drawn
        gap = max(GAP, end + GAP - cells(drawn))
        origin = row.origin if width >= NARROW else row.origin.removeprefix("changed ")
        return line(*drawn, " " * gap, Span(fit(origin, width - cells(drawn) - gap, glyphs.ellipsis), "dim"))

    return Entry(row.key, text, draw)


def _value_width(row: SettingRow) -> int:
    """0 for a long one, which moves what is after it."""
    width = num_cells(row.value)
    return width if width <= WIDEST_VALUE else 0


def _width(notes: Iterable[tuple[str, Tone]]) -> int:
    return sum(GAP + num_cells(words) for words, _ in notes)


def _phrase(row: SettingRow) -> str:
    """Where its value is from, as a part of a sentence."""
    return row.origin if row.live is not None else PHRASES.get(row.origin, f"from {row.origin}")
