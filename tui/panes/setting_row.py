"""A line of the configuration: a section, or a setting with its default and what it was changed to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import RunView
from rl_tui.tui.drawing.glyphs import Glyphs
from rl_tui.tui.drawing.lines import Line, Span, Tone, cells, line
from rl_tui.tui.drawing.text import count, fit, fit_path, left, num_cells
from rl_tui.tui.panes.list import Entry
from rl_tui.tui.runs.configurations import KeyPath, Setting

SIGNS: dict[str, tuple[str, Tone]] = {  # by how a setting differs from that of another run, or from its default
    "other": ("~", "warning"), "here": ("+", "good"), "there": ("-", "bad"), "default": ("*", "accent"),
}  # fmt: skip
INDENT, SIGN_WIDTH, GAP = 2, 2, 2
WIDEST_VALUE = 14  # of a value that has words after it; a longer one moves these to the right


@dataclass(frozen=True, slots=True)
class LiveValue:
    """What a hyperparameter was changed to while training, and at which step of its behavior."""

    value: str
    step: int


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
    section of what differs that it is in; () in the file's own."""

    setting: Setting
    name: str
    num_dim: int
    depth: int
    live: LiveValue | None
    where: KeyPath = ()

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


@dataclass(frozen=True, slots=True)
class Columns:
    """Cells that names, with their indentation, and values take in all rows of a list."""

    name: int
    value: int


def columns_of(rows: Iterable[HeadingRow | SettingRow]) -> Columns:
    """As wide as the longest name, and as the longest of the short values that have words after them."""
    settings = [row for row in rows if isinstance(row, SettingRow)]
    name = max((num_cells(row.name) + INDENT * row.depth for row in settings), default=0)
    values = (num_cells(row.value) for row in settings if row.notes)
    return Columns(name, max((width for width in values if width <= WIDEST_VALUE), default=0))


def row_entry(row: HeadingRow | SettingRow, columns: Columns, glyphs: Glyphs) -> Entry:
    """The row as an entry of a list."""
    return _heading_entry(row, glyphs) if isinstance(row, HeadingRow) else _setting_entry(row, columns, glyphs)


def changed_values(view: RunView) -> dict[KeyPath, LiveValue]:
    """What was changed while training and is used now, by the setting's path."""
    return {
        ("behaviors", safe_text(behavior.name), "hyperparameters", *event.name.split(".")): LiveValue(
            f"{event.new:g}", event.step
        )
        for behavior in view.behaviors.values()
        for _, event in behavior.changes
    }


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
    notes = row.notes
    path = ".".join(row.setting.path)
    plain: tuple[str, Tone] = (glyphs.changed, "accent") if row.live is not None else (" ", "text")
    text = f"{path}: {row.value}" + (f" ({'; '.join(words for words, _ in notes)})" if notes else "")
    sign, tone = SIGNS.get(row.kind, plain)

    def draw(width: int) -> Line:
        indent = min(INDENT * row.depth, width // 4)
        column = max(8, min(columns.name, width * 5 // 9))
        name = fit_path(row.name, max(4, column - indent), glyphs.ellipsis)
        num_dim = row.num_dim if name == row.name else 0
        keys = Span(name[:num_dim], "dim"), left(name[num_dim:], max(0, column - indent - num_dim))
        after = [span for words, tone in notes for span in (Span(" " * GAP), Span(words, tone))]
        room = max(8, width - SIGN_WIDTH - column - GAP - cells(tuple(after)))
        value = fit(row.value, room, glyphs.ellipsis)
        if notes and num_cells(value) < columns.value:
            value = left(value, min(columns.value, room))
        shown = Span(value, "strong" if row.kind or row.live else "text")
        return line(" " * indent, Span(f"{sign} ", tone), *keys, " " * GAP, shown, *after)

    return Entry(row.key, text, draw)
