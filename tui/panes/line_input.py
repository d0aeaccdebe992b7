"""Where a line of text is typed."""

from __future__ import annotations

from textual.widgets import Input

from engine.session.text import safe_text


class LineInput(Input):
    """One line high, its cursor stands still, and what is pasted into it cannot drive the terminal."""

    def __init__(self, value: str, is_selected: bool = False) -> None:
        """is_selected: what is typed first takes the place of `value`."""
        super().__init__(value, compact=True, select_on_focus=is_selected)
        self.cursor_blink = False

    def validate_value(self, value: str) -> str:
        """Textual asks before it takes a value over."""
        return safe_text(value)
