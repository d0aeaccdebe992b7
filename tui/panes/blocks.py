"""A list whose entries may take several lines each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rl_tui.engine.session.text import safe_text
from rl_tui.tui.drawing.lines import Line, Span, line
from rl_tui.tui.panes.base import Frame
from rl_tui.tui.panes.list import Entry, ListPane, filtered


@dataclass(frozen=True, slots=True)
class Block(Entry):
    """An entry with lines below its own. rest: makes them for a width; their number must not depend on the time.

    aside: what stands at the right of its own line and looks the same when the cursor is on it.
    """

    rest: Callable[[int], Sequence[Line]]
    aside: Callable[[int], Line] = lambda _: ()


class BlocksPane(ListPane):
    """Runs in the app's thread. A list of blocks that scrolls by whole blocks; plain entries may stand among them."""

    def __init__(self) -> None:
        super().__init__()
        self._owners: list[int] = []  # of every visible line: the index of its entry, -1 for the header

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """Header, then the blocks around the cursor."""
        everything = self.entries(frame)
        pattern = frame.state.filters.get(self.topic, "")
        self._shown = filtered(everything, pattern)
        head = self.header(frame, width)
        rows = [head] if head is not None else []
        self._owners = [-1] * len(rows)
        if not self._shown:
            words = f"no line matches /{safe_text(pattern)}/" if everything else self.empty(frame)
            return [*rows, line(Span(f" {words}", "dim"))]
        room = max(1, height - len(rows))
        blocks: dict[int, list[Line]] = {}
        current = self._index(frame, self._shown)
        is_focused = frame.focus == self.topic

        def block(index: int) -> list[Line]:
            if index not in blocks:
                entry, inner = self._shown[index], width - self.cursor_width
                first = self._row(entry.draw(inner), index == current and is_focused, frame)
                aside, rest = (entry.aside(inner), entry.rest(inner)) if isinstance(entry, Block) else ((), ())
                blocks[index] = [line(*first, *aside), *(line(" " * self.cursor_width, *spans) for spans in rest)]
            return blocks[index]

        self._first = self._scrolled(current, room, lambda index: len(block(index)))
        index = self._first
        while index < len(self._shown) and len(self._owners) < height:
            rows += block(index)
            self._owners += [index] * len(block(index))
            index += 1
        self._num_visible = max(1, index - self._first)
        return rows

    def _scrolled(self, current: int, room: int, tall: Callable[[int], int]) -> int:
        """The topmost block, moved as little as brings all of the current one into sight and leaves no room below."""
        first = max(min(self._first, current), current - room)
        used = sum(tall(index) for index in range(first, current + 1))
        while first < current and used > room:
            used -= tall(first)
            first += 1
        below = current + 1
        while below < len(self._shown) and used < room:
            used += tall(below)
            below += 1
        while first > 0 and used + tall(first - 1) <= room:
            first -= 1
            used += tall(first)
        return first

    def _index_at(self, y: int, frame: Frame) -> int:
        """Of the block that the line belongs to."""
        return self._owners[y] if 0 <= y < len(self._owners) else -1
