"""A text to read: longer than the pane, it is scrolled by the keys of lists and by the wheel."""

from __future__ import annotations

from textual import events

from rl_tui.tui.drawing.lines import Line
from rl_tui.tui.keys.keymap import Place, bindings
from rl_tui.tui.panes.base import Frame, Pane


class PagePane(Pane):
    """Lives in the app's thread. Owns how far the text is scrolled; a subclass writes it."""

    can_focus = True
    BINDINGS = bindings("list")
    places: tuple[Place, ...] = ("list",)

    def __init__(self) -> None:
        super().__init__()
        self._top = self._num_lines = self._num_visible = 0

    def text(self, frame: Frame, width: int) -> list[Line]:
        """All of it, in lines of at most `width` cells."""
        return []

    def titled(self, frame: Frame) -> str:
        """The heading, and which part of the text is in sight when that is not all."""
        heading = self.heading(frame)
        if self._num_lines <= self._num_visible:
            return heading
        last = min(self._top + self._num_visible, self._num_lines)
        return f"{heading} {frame.glyphs.dot} lines {self._top + 1}-{last} of {self._num_lines}"

    def inputs(self, frame: Frame) -> object:
        """How far it is scrolled; a subclass adds what else is shown at once."""
        return self._top

    def wanted_height(self, frame: Frame, width: int) -> int:
        """All of it."""
        return max(1, len(self.text(frame, width)))

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """The part that it is scrolled to."""
        text = self.text(frame, width)
        self._num_lines, self._num_visible = len(text), height
        self._top = max(0, min(self._top, len(text) - height))
        return text[self._top : self._top + height]

    def action_cursor(self, by: int) -> None:
        """Scroll by that many lines; the ends are ends."""
        self._top = max(0, min(self._top + by, self._num_lines - self._num_visible))
        self.call_later(self.run_action, "screen.redraw")

    def action_page(self, by: int) -> None:
        """Scroll by pages."""
        self.action_cursor(by * max(1, self._num_visible - 1))

    def action_cursor_end(self, by: int) -> None:
        """Scroll to the first or the last line."""
        self.action_cursor(by * self._num_lines)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Three lines up."""
        self.action_cursor(-3)
        event.stop()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Three lines down."""
        self.action_cursor(3)
        event.stop()
