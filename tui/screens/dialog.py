"""What the dialogs of one pane have in common."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen

from rl_tui.tui.drawing.painting import Patch, spots
from rl_tui.tui.panes.base import Frame, Pane


class PaneDialog(ModalScreen[bool]):
    """A dialog whose one pane is drawn like those of the screens."""

    def __init__(self, pane: Pane) -> None:
        super().__init__()
        self.pane = pane
        self.was_drawn = False  # at least once

    def compose(self) -> ComposeResult:
        """One box."""
        with Vertical(classes="dialog"):
            yield self.pane

    @property
    def is_laid_out(self) -> bool:
        """Whether Textual has drawn the box, with what the pane expected to show."""
        return self.pane in spots(self)

    @property
    def panes(self) -> Sequence[Pane]:
        """What is drawn."""
        return [self.pane]

    def draw(self, frame: Frame) -> list[Patch]:
        """Bring the box up to `frame` and return what is to be painted."""
        return self.pane.draw(frame, spots(self).get(self.pane))
