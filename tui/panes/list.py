"""A list with a cursor: it scrolls, is filtered by a regular expression, and keeps its place while entries change."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from textual import events

from rl_tui.engine.session.text import safe_text
from rl_tui.tui.drawing.lines import Line, Span, cells, line
from rl_tui.tui.keys.keymap import Place, bindings
from rl_tui.tui.panes.base import Frame, Pane


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a list. key: the same as long as it is the same thing; text: what a filter is matched against and
    what is copied; draw: its line in a width, without the cursor's cells."""

    key: str
    text: str
    draw: Callable[[int], Line]


class ListPane(Pane):
    """Runs in the app's thread. A subclass says what the entries are; the cursor and the filter are in the state.

    With `follows_end` a list without a cursor shows its last entries, else its first.
    """

    can_focus = True
    BINDINGS = bindings("list")
    places: tuple[Place, ...] = ("list",)
    follows_end = False
    cursor_width = 2
    wheel_entries = 3

    def __init__(self) -> None:
        super().__init__()
        self._first = 0  # index of the topmost visible entry
        self._shown: list[Entry] = []
        self._num_visible = 1

    def entries(self, frame: Frame) -> Sequence[Entry]:
        """All of them, in order, whatever the filter says."""
        return []

    def header(self, frame: Frame, width: int) -> Line | None:
        """The line above the entries, if there is one."""
        return None

    def empty(self, frame: Frame) -> str:
        """What is shown in place of entries."""
        return "nothing yet"

    def wanted_height(self, frame: Frame, width: int) -> int:
        """Everything."""
        return max(1, len(self.entries(frame))) + (self.header(frame, width) is not None)

    def titled(self, frame: Frame) -> str:
        """The heading, and the filter if there is one."""
        heading, pattern = self.heading(frame), frame.state.filters.get(self.topic)
        return f"{heading} /{safe_text(pattern)}/" if pattern else heading

    def inputs(self, frame: Frame) -> object:
        """The cursor and the filter are shown at once; a subclass adds what its entries are made of."""
        return frame.state.cursors.get(self.topic), frame.state.filters.get(self.topic)

    def current(self, frame: Frame) -> Entry | None:
        """The entry below the cursor; the first (or last) one while the cursor was not moved."""
        shown = filtered(self.entries(frame), frame.state.filters.get(self.topic, ""))
        at = self._index(frame, shown)
        return shown[at] if shown else None

    def chosen(self) -> Entry | None:
        """The entry below the cursor, as the user saw it last."""
        return self.current(self._frame) if self._frame is not None else None

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """Header, then the entries around the cursor."""
        everything = self.entries(frame)
        pattern = frame.state.filters.get(self.topic, "")
        self._shown = filtered(everything, pattern)
        head = self.header(frame, width)
        rows = [head] if head is not None else []
        if not self._shown:
            words = f"no line matches /{safe_text(pattern)}/" if everything else self.empty(frame)
            return [*rows, line(Span(f" {words}", "dim"))]
        room = self._num_visible = max(1, height - len(rows))
        at = self._index(frame, self._shown)
        self._first = max(0, min(max(min(self._first, at), at - room + 1), len(self._shown) - room))
        is_focused = frame.focus == self.topic
        for index, entry in enumerate(self._shown[self._first : self._first + room], self._first):
            spans = entry.draw(width - self.cursor_width)
            is_current = index == at and is_focused
            rows.append(self._row(spans, is_current, frame))
        return rows

    def _row(self, spans: Line, is_current: bool, frame: Frame) -> Line:
        if not is_current:
            return line(" " * self.cursor_width, *spans)
        marker = frame.glyphs.marker.ljust(self.cursor_width)
        bright = (Span(span.text, "strong" if span.tone in ("text", "dim", "faint") else span.tone) for span in spans)
        return line(Span(marker, "accent"), *bright)

    def _index(self, frame: Frame, shown: Sequence[Entry]) -> int:
        key = frame.state.cursors.get(self.topic)
        for index, entry in enumerate(shown):
            if entry.key == key:
                return index
        return len(shown) - 1 if self.follows_end else 0

    # What the user does. The frame is the one drawn last: keys act on what was seen.

    def action_cursor(self, by: int) -> None:
        """Move the cursor by that many entries; the ends are ends."""
        if self._frame is not None and self._shown:
            at = self._index(self._frame, self._shown)
            self._go(max(0, min(len(self._shown) - 1, at + by)))

    def action_page(self, by: int) -> None:
        """Move the cursor by pages."""
        self.action_cursor(by * max(1, self._num_visible - 1))

    def action_cursor_end(self, by: int) -> None:
        """Move the cursor to the first or the last entry."""
        self.action_cursor(by * len(self._shown))

    def action_match(self, by: int) -> None:
        """Move the cursor through what the filter found, round and round."""
        if self._frame is None:
            return
        if self._frame.state.filters.get(self.topic) and self._shown:
            self._go((self._index(self._frame, self._shown) + by) % len(self._shown))
        else:
            key = self._frame.keymap.of_id("filter").shown
            self._frame.status.say(f"match: no filter has found anything here; {key} sets one", "text")
            self.call_later(self.run_action, "screen.redraw")

    def on_click(self, event: events.Click) -> None:
        """The clicked entry gets the cursor; a second click opens it."""
        offset = event.get_content_offset(self)
        if offset is None or self._frame is None:
            return
        index = self._index_at(offset.y, self._frame)
        if 0 <= index < len(self._shown):
            self._go(index)
            if event.chain == 2:
                self.call_later(self.run_action, "screen.open")

    def _index_at(self, y: int, frame: Frame) -> int:
        """Of the entry on that line, -1 on the header; past the last one there may be none."""
        row = y - (self.header(frame, self.size.width) is not None)
        return self._first + row if row >= 0 else -1

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """`wheel_entries` up."""
        self.action_cursor(-self.wheel_entries)
        event.stop()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """`wheel_entries` down."""
        self.action_cursor(self.wheel_entries)
        event.stop()

    def _go(self, index: int) -> None:
        assert self._frame is not None
        key = self._shown[index].key
        if self.follows_end and index == len(self._shown) - 1:
            self._frame.state.cursors.pop(self.topic, None)  # follows again
        else:
            self._frame.state.cursors[self.topic] = key
        self.call_later(self.run_action, "screen.redraw")


def filtered(entries: Sequence[Entry], pattern: str) -> list[Entry]:
    """The entries in which `pattern` is found, case ignored; what is no regular expression is taken literally."""
    if not pattern:
        return list(entries)
    try:
        search = re.compile(pattern, re.IGNORECASE).search
    except re.error:
        search = re.compile(re.escape(pattern), re.IGNORECASE).search
    return [entry for entry in entries if search(entry.text)]


def mistake(pattern: str) -> str:
    """Why `pattern` is taken literally; "" when it is a regular expression."""
    try:
        re.compile(pattern)
    except re.error as error:
        return f"matched as plain text: {error.msg}"
    return ""


def same(spans: Line) -> Callable[[int], Line]:
    """The way to draw a line that is the same in every width."""
    return lambda _: spans


def plain(spans: Line) -> str:
    """The line without its tones."""
    return "".join(span.text for span in spans)


def fixed(spans: Line, width: int) -> Line:
    """The line made exactly as wide as its column, if it is shorter."""
    return (*spans, Span(" " * (width - cells(spans)))) if cells(spans) < width else spans
