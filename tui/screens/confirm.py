"""A question before something that costs; doing nothing is the default."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events

from rl_tui.tui.drawing.lines import Line, Span, line
from rl_tui.tui.drawing.text import wrapped
from rl_tui.tui.keys.keymap import bindings
from rl_tui.tui.panes.base import Frame, Pane
from rl_tui.tui.screens.dialog import PaneDialog


class ConfirmScreen(PaneDialog):
    """Ends with True for yes, with False for everything else."""

    BINDINGS = bindings("confirming")

    def __init__(self, question: str, paragraphs: Sequence[str], yes: str) -> None:
        """paragraphs: what exactly will happen; yes: what the answer does, in two or three words."""
        super().__init__(ConfirmPane(question, paragraphs, yes))

    def action_yes(self) -> None:
        """Do it."""
        self.dismiss(True)

    def action_no(self) -> None:
        """Leave everything as it is."""
        self.dismiss(False)


class ConfirmPane(Pane):
    """The question, what yes means, and the answers; a click gives one, too."""

    def __init__(self, question: str, paragraphs: Sequence[str], yes: str) -> None:
        super().__init__()
        self._question, self._paragraphs, self._yes = question, paragraphs, yes

    def wanted_height(self, frame: Frame, width: int) -> int:
        """All of it."""
        return len(self.lines(frame, width, 0))

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """The answers come last, and stay where there is no room for all of the words."""
        words = [
            *(line(Span(row, "strong")) for row in wrapped(self._question, max(width, 2))),
            line(),
            *(line(row) for text in self._paragraphs for row in wrapped(text, max(width, 2))),
            line(),
        ]
        no = Span(f"{frame.glyphs.marker} esc  ", "accent")
        answers = [
            line(Span("  y    ", "accent"), self._yes),
            line(no, Span("no", "strong"), Span("  nothing changes", "dim")),
        ]
        return [*(words[: max(0, height - len(answers))] if height else words), *answers]

    def on_click(self, event: events.Click) -> None:
        """The answer on that line."""
        offset = event.get_content_offset(self)
        if offset is not None and offset.y >= self.size.height - 2:
            self.call_later(self.run_action, "screen.yes" if offset.y == self.size.height - 2 else "screen.no")
