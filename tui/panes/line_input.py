"""Where a line of text is typed."""

from __future__ import annotations

from textual.binding import Binding
from textual.events import Key, Paste
from textual.widgets import Input

from rl_tui.engine.session.text import one_line, safe_text

EDITING = {
    key: binding.action
    for binding in Input.BINDINGS
    if isinstance(binding, Binding) and binding.action != "submit"
    for key in binding.key.split(",")
}


class LineInput(Input):
    """One line high, its cursor stands still, and what is pasted into it cannot drive the terminal."""

    def __init__(self, value: str, is_selected: bool = False) -> None:
        """is_selected: what is typed first takes the place of `value`."""
        super().__init__(value, compact=True, select_on_focus=is_selected)
        self.cursor_blink = False

    def validate_value(self, value: str) -> str:
        """Textual asks before it takes a value over."""
        return safe_text(value)

    def on_paste(self, event: Paste) -> None:
        """All that is pasted is taken, its lines side by side; Textual would take the first line and drop the rest."""
        event.stop()
        event.prevent_default()
        self.replace(one_line(event.text), *self.selection)

    async def on_key(self, event: Key) -> None:
        """Keys that edit act at once; as bindings they would come after letters typed right behind them."""
        action = EDITING.get(event.key)
        if action is not None:
            event.stop()
            event.prevent_default()
            await self.run_action(action)
