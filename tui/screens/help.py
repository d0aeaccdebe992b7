"""Every key, made from the keymap."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from tui.keymap import bindings, by_group

SHOWN_WIDTH = 10


class HelpScreen(ModalScreen[None]):
    """Closes on esc, enter or ?."""

    BINDINGS = list(bindings("help"))

    def compose(self) -> ComposeResult:
        """The page; it scrolls on a low terminal."""
        with VerticalScroll(id="help", classes="dialog"):
            for heading, rows in help_blocks():
                yield Static(heading, classes="heading")
                yield Static(Content("\n".join(rows)))

    def action_close(self) -> None:
        """Back to the overview."""
        self.dismiss()


def help_blocks() -> list[tuple[str, list[str]]]:
    """The keymap as headings, each with its lines."""
    return [
        (heading, [f"  {key.shown:<{SHOWN_WIDTH}}{key.explained}" for key in keys])
        for heading, keys in by_group().items()
    ]
