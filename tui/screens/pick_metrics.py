"""The dialog in which the metrics of a chart are picked, by fuzzy search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.fuzzy import Matcher
from textual.widgets import Input

from rl_tui.engine.session.text import safe_text
from rl_tui.tui.charts.metrics import full_name, metric_title
from rl_tui.tui.drawing.lines import Line, Span, flush, line, pack
from rl_tui.tui.drawing.text import fit
from rl_tui.tui.keys.keymap import bindings
from rl_tui.tui.panes.base import Frame, Pane
from rl_tui.tui.panes.line_input import LineInput
from rl_tui.tui.screens.context import Context
from rl_tui.tui.screens.dialog import PaneDialog

ROWS = 12


class PickMetricsScreen(PaneDialog):
    """Ends with True when `picked` is to be drawn and `pinned` to be in the grid, and with None when the user would
    rather not.

    metrics: every tag, in its order, with a word on where it comes from. pinned: those in the grid, None where there
    is no grid.
    """

    BINDINGS = bindings("picking")

    def __init__(
        self, context: Context, metrics: Mapping[str, str], drawn: Sequence[str], pinned: Sequence[str] | None
    ) -> None:
        self._list = PickPane(metrics, drawn, pinned)
        super().__init__(self._list)
        self._shared = context

    @property
    def picked(self) -> list[str]:
        """The tags to be drawn together, in the order in which they were marked; none where pins alone were changed."""
        return self._list.picked()

    @property
    def pinned(self) -> list[str] | None:
        """The tags in the grid, in the order in which they were pinned; None where the user has changed nothing."""
        return self._list.pinned()

    def compose(self) -> ComposeResult:
        """What was typed, and the metrics that fit to it."""
        with Vertical(id="pick", classes="dialog") as box:
            box.border_title = Content("Metrics")
            box.border_subtitle = "space mark   tab pin   enter accept   esc cancel"
            yield SearchInput("")
            yield self._list

    def on_mount(self) -> None:
        """The line has the keys."""
        self.query_one(LineInput).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Other metrics fit."""
        event.stop()
        self._list.search(event.value.strip())
        self._shared.redraw()

    def action_cursor(self, by: int) -> None:
        """Move the cursor; the ends are ends."""
        self._list.move(by)
        self._shared.redraw()

    def action_pick(self) -> None:
        """Mark the metric below the cursor, or no longer."""
        self._list.toggle()
        self._shared.redraw()

    def action_pin(self) -> None:
        """The metric below the cursor stands in the grid, or no longer."""
        self._list.toggle_pin()
        self._shared.redraw()

    def action_take(self) -> None:
        """Draw what is marked, and keep what is pinned."""
        if self.picked or self.pinned is not None:
            self.dismiss(True)

    def action_cancel(self) -> None:
        """Draw what was drawn before."""
        self.dismiss(None)


class SearchInput(LineInput):
    """What is typed into it has no blanks: space marks."""

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Textual asks whether bindings must leave the key alone."""
        return key != "space" and super().check_consume_key(key, character)


class PickPane(Pane):
    """Owns the marks, the pins and the cursor."""

    def __init__(self, metrics: Mapping[str, str], drawn: Sequence[str], pinned: Sequence[str] | None) -> None:
        super().__init__()
        self._pinned = list(pinned or ())
        self._has_grid = pinned is not None
        self._was_pinned_by_hand = False
        self._metrics = metrics
        self._marked = [tag for tag in drawn if tag in metrics]
        self._fitting = list(metrics)
        self._cursor = 0
        self._was_marked_by_hand = False

    def wanted_height(self, frame: Frame, width: int) -> int:
        """As if nothing was typed, so that the dialog stands still."""
        return 1 + min(ROWS, max(1, len(self._metrics)))

    def search(self, typed: str) -> None:
        """Only what fits to it, the best first."""
        self._fitting, self._cursor = fitting(self._metrics, typed), 0

    def move(self, by: int) -> None:
        """Move the cursor; the ends are ends."""
        self._cursor = max(0, min(len(self._fitting) - 1, self._cursor + by))

    def toggle(self) -> None:
        """Mark the metric below the cursor, or no longer."""
        if self._fitting:
            self._was_marked_by_hand = True
            tag = self._fitting[self._cursor]
            self._marked = [each for each in self._marked if each != tag] + [tag] * (tag not in self._marked)

    def toggle_pin(self) -> None:
        """Pin the metric below the cursor, or unpin it; where there is no grid, only words say so."""
        self._was_pinned_by_hand = True
        if self._fitting and self._has_grid:
            tag = self._fitting[self._cursor]
            self._pinned = [each for each in self._pinned if each != tag] + [tag] * (tag not in self._pinned)

    def pinned(self) -> list[str] | None:
        """Those pinned; None when the user has pinned and unpinned nothing."""
        return list(self._pinned) if self._has_grid and self._was_pinned_by_hand else None

    def picked(self) -> list[str]:
        """Those marked; if the user marked none, the one below the cursor. Empty when there is neither, and where the
        user only pinned."""
        if self._was_marked_by_hand and self._marked:
            return list(self._marked)
        if self.pinned() is not None:
            return []
        return self._fitting[self._cursor : self._cursor + 1]

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """What would be drawn, and the metrics around the cursor."""
        words = line(Span(fit(self._would_draw(), width, frame.glyphs.ellipsis), "dim"))
        if not self._fitting:
            return [words, line(Span("  no metric matches", "dim"))]
        room = height - 1
        first = max(0, min(self._cursor - room // 2, len(self._fitting) - room))
        rows = range(first, min(first + room, len(self._fitting)))
        return [words, *(self._row(index, frame, width) for index in rows)]

    def _would_draw(self) -> str:
        """What enter does, also of what the search hides."""
        if self._was_pinned_by_hand and not self._has_grid:
            return "a comparison has no chart grid to pin to"
        picked = [metric_title(tag) for tag in self.picked()]
        pins = self.pinned()
        if not picked:
            return "nothing is marked" if pins is None else f"enter keeps {len(pins) or 'the usual'} in the grid"
        count = f"{len(picked)}: " if len(picked) > 1 else ""
        words = f"enter draws {count}{', '.join(picked)}"
        marked = [metric_title(tag) for tag in self._marked if tag not in self.picked()]
        return f"{words}, space adds it to {', '.join(marked)}" if marked else words

    def _row(self, index: int, frame: Frame, width: int) -> Line:
        tag = self._fitting[index]
        is_current, is_marked = index == self._cursor, tag in self._marked
        name = fit(safe_text(full_name(tag)), width - 7, frame.glyphs.ellipsis)
        spans = line(
            Span(f"{frame.glyphs.marker if is_current else ' '} ", "accent"),
            Span(f"[{frame.glyphs.done if is_marked else ' '}] ", "accent" if is_marked else "dim"),
            Span(name, "strong" if is_current else "text"),
        )
        words = [line(Span("in the grid", "accent"))] if tag in self._pinned else []
        return flush(spans, pack([*words, line(Span(self._metrics[tag], "dim"))], width, gap=2), width)


def fitting(tags: Mapping[str, str] | Sequence[str], typed: str) -> list[str]:
    """The tags that fit to what was typed, the best first; all, in their order, when nothing was."""
    if not typed:
        return list(tags)
    match = Matcher(typed).match
    scores = {tag: match(full_name(tag)) for tag in tags}
    return sorted((tag for tag in tags if scores[tag] > 0), key=lambda tag: -scores[tag])
