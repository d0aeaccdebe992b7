"""The settings in which compared runs differ: one line each, a column per run or group."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rl_tui.engine.session.text import counted
from rl_tui.tui.charts.compared_figure import Compared
from rl_tui.tui.drawing.lines import Line, Span, line
from rl_tui.tui.drawing.text import left, num_cells
from rl_tui.tui.panes.base import BEAT, Frame
from rl_tui.tui.panes.comparison import ComparisonChart
from rl_tui.tui.panes.list import Entry, ListPane
from rl_tui.tui.runs.comparing import ComparedItem, Comparison
from rl_tui.tui.runs.configurations import Settings, differing
from rl_tui.tui.runs.groups import SEED

GAP = 2  # cells between columns
LONGEST_VALUE = 32


class ComparisonSettings(ListPane):
    """A column has the number and the color of its curve. Values that are not those of the first column stand out."""

    topic = "settings"
    seconds = BEAT

    def __init__(self, comparison: Comparison, chart: ComparisonChart) -> None:
        super().__init__()
        self._comparison, self._chart = comparison, chart

    def inputs(self, frame: Frame) -> object:
        """What is compared, and what is known of it."""
        return super().inputs(frame), self._chart.inputs(frame)

    def heading(self, frame: Frame) -> str:
        """How many there are."""
        num = len(self.entries(frame))
        return f"Settings that differ {frame.glyphs.dot} {num}" if num else "Settings that differ"

    def empty(self, frame: Frame) -> str:
        """Why there is no line."""
        runs = self._comparison.runs.values()
        if not all(run.is_read for run in runs):
            return "reading the runs"
        unknown = sum(not run.settings for run in runs)
        if unknown:
            return f"the configuration of {counted(unknown, 'run')} cannot be read; all others agree"
        return "none: all settings are the same"

    def header(self, frame: Frame, width: int) -> Line | None:
        """The labels of the curves, in their colors."""
        shown, table = self._table(frame)
        if not table:
            return None
        name_width, columns = _widths(shown, table, width - self.cursor_width)
        labels = [
            Span(" " * GAP + left(_title(each), cells, frame.glyphs.ellipsis), each.tone)
            for each, cells in zip(shown, columns, strict=True)
        ]
        return line(Span(" " * self.cursor_width + left("setting", name_width), "dim"), *labels)

    def entries(self, frame: Frame) -> Sequence[Entry]:
        """One per setting, in the order of the file."""
        shown, table = self._table(frame)
        return [
            Entry(name, f"{name} {' '.join(values)}", partial(_row, at, shown, table, frame.glyphs.ellipsis))
            for at, (name, values) in enumerate(table)
        ]

    def wanted_width(self, frame: Frame) -> int:
        """Cells for whole names of settings and every column; what is said where there is none."""
        shown, table = self._table(frame)
        if not table:
            return num_cells(self.empty(frame)) + 2
        names = max(len("setting"), *(num_cells(name) for name, _ in table))
        return self.cursor_width + names + sum(GAP + cells for cells in _needed(shown, table))

    def _table(self, frame: Frame) -> tuple[Sequence[Compared], list[tuple[str, list[str]]]]:
        """What is compared, and for each setting its name and its value in each of them."""
        items = {item.number: item for item in self._comparison.items}
        shown = [each for each in self._chart.compared(frame) if settings_of(items[each.number])]
        rows = differing([(settings_of(items[each.number]), each.members[0].behavior.name) for each in shown])
        names = [name for name, _ in rows[0]] if rows else []
        return shown, [(name, [row[at][1] for row in rows]) for at, name in enumerate(names)]


def settings_of(item: ComparedItem) -> Settings:
    """Of a group, whose runs agree on everything else, with the seed of each."""
    settings = [run.settings for run in item.runs]
    seeds = [seed for each in settings if (seed := each.get(SEED)) is not None]
    return {**settings[0], SEED: " ".join(seeds)} if item.is_group and seeds else settings[0]


def _title(each: Compared) -> str:
    return f"{each.label} {each.name}"


def _widths(shown: Sequence[Compared], table: Sequence[tuple[str, Sequence[str]]], width: int) -> tuple[int, list[int]]:
    """Cells of the names, and of each column without its gap: as much as it needs, or an equal share."""
    name_width = min(max(len("setting"), *(num_cells(name) for name, _ in table)), max(10, width // 3))
    share = max(1, (width - name_width) // len(shown) - GAP)
    return name_width, [min(share, cells) for cells in _needed(shown, table)]


def _needed(shown: Sequence[Compared], table: Sequence[tuple[str, Sequence[str]]]) -> list[int]:
    """Cells of each column's longest value."""
    return [
        max(min(LONGEST_VALUE, num_cells(_title(each))), *(min(LONGEST_VALUE, num_cells(row[at])) for _, row in table))
        for at, each in enumerate(shown)
    ]


def _row(
    at: int, shown: Sequence[Compared], table: Sequence[tuple[str, Sequence[str]]], ellipsis: str, width: int
) -> Line:
    name_width, columns = _widths(shown, table, width)
    name, values = table[at]
    cells = [
        Span(" " * GAP + left(value, room, ellipsis), "text" if value == values[0] else "strong")
        for value, room in zip(values, columns, strict=True)
    ]
    return line(Span(left(name, name_width, ellipsis), "dim"), *cells)
