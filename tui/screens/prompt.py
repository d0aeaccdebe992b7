"""A line of text that is asked for, checked while it is typed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from rl_tui.tui.keys.keymap import bindings
from rl_tui.tui.panes.line_input import LineInput


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the text would do, or what is wrong with it, in a sentence."""

    words: str
    is_good: bool = True


class PromptScreen(ModalScreen[str]):
    """Ends with the text once it is good, and with None when the user would rather not.

    subject: index of the one among `subjects` that it is about; tab goes to the next.
    """

    BINDINGS = bindings("asking")

    def __init__(
        self, title: str, check: Callable[[str], Verdict], value: str = "", subjects: Sequence[str] = ()
    ) -> None:
        super().__init__()
        self.subject = 0
        self._title, self._check, self._value, self._subjects = title, check, value, subjects

    def compose(self) -> ComposeResult:
        """Title, line, verdict, keys."""
        with Vertical(classes="dialog prompt"):
            yield Static(Content(self._title), classes="tone--strong")
            if self._subjects:
                yield Static(classes="subject tone--dim")
            yield PromptInput(self._value, is_selected=True)
            yield Static(classes="verdict")
            about = "   tab about another" if len(self._subjects) > 1 else ""
            yield Static(f"enter take   esc cancel{about}", classes="tone--dim")

    def on_mount(self) -> None:
        """The line has the keys."""
        self.query_one(PromptInput).focus()
        self._tell()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Another verdict."""
        event.stop()
        self._tell()

    def action_take(self) -> None:
        """The text is the answer, if it is good."""
        text = self.query_one(PromptInput).value.strip()
        if self._check(text).is_good:
            self.dismiss(text)

    def action_cancel(self) -> None:
        """No answer."""
        self.dismiss(None)

    def action_about(self) -> None:
        """The next subject."""
        if self._subjects:
            self.subject = (self.subject + 1) % len(self._subjects)
            self._tell()

    def _tell(self) -> None:
        verdict = self._check(self.query_one(PromptInput).value.strip())
        words = self.query_one(".verdict", Static)
        words.update(Content(verdict.words))
        words.set_class(not verdict.is_good, "tone--warning")
        if self._subjects:
            self.query_one(".subject", Static).update(Content(f"about {self._subjects[self.subject]}"))


class PromptInput(LineInput):
    """Letters are typed; enter, esc and tab act on the dialog."""

    BINDINGS = bindings("asking")
