"""A line of text that is asked for, checked while it is typed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.drawing.text import count
from rl_tui.tui.keys.keymap import bindings
from rl_tui.tui.panes.line_input import LineInput
from rl_tui.tui.runs.seeking import Seek

MAX_CHARACTERS = 200  # of a note: about two lines of the log; more is for an editor
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
SHARE = re.compile(r"([0-9]{1,3}(?:\.[0-9]*)?) *%")
STEP = re.compile(r"([0-9][0-9_]{0,17}(?:\.[0-9]*)?) *([kmg]?)", re.IGNORECASE)


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
            about = "   tab switch" if len(self._subjects) > 1 else ""
            yield Static(f"enter accept   esc cancel{about}", classes="tone--dim")

    def on_mount(self) -> None:
        """The line has the keys."""
        self.query_one(PromptInput).focus()
        self._check_text()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Another verdict."""
        event.stop()
        self._check_text()

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
            self._check_text()

    def _check_text(self) -> None:
        text = self.query_one(PromptInput).value.strip()
        verdict = self._check(text)
        words = self.query_one(".verdict", Static)
        words.update(Content(verdict.words))
        words.set_class(not verdict.is_good and bool(text), "tone--warning")
        words.set_class(not text, "tone--dim")  # nothing is wrong before anything is typed
        if self._subjects:
            self.query_one(".subject", Static).update(Content(f"about {self._subjects[self.subject]}"))


class PromptInput(LineInput):
    """Letters are typed; enter, esc and tab act on the dialog."""

    BINDINGS = bindings("asking")


def note_prompt(behavior: BehaviorView | None) -> PromptScreen:
    """Asks for one line; its first subject is the behavior, if there is one, its last the run."""
    subjects = ("the run",) if behavior is None else (safe_text(behavior.name), "the run")
    return PromptScreen("Note", _note_verdict, subjects=subjects)


def _note_verdict(text: str) -> Verdict:
    if not text:
        return Verdict("one line: what you saw, or what you changed", is_good=False)
    if len(text) > MAX_CHARACTERS:
        return Verdict(f"{len(text)} characters, must be at most {MAX_CHARACTERS}", is_good=False)
    return Verdict("saved with the run's events; charts mark its step")


def typed_seek(text: str, behavior: str) -> Seek:
    """A share as `50%`, or a step of that behavior as `120000`, `120k`, `1.5M`. Raises ValueError for anything else."""
    if (share := SHARE.fullmatch(text)) and float(share[1]) <= 100:
        return Seek(share=float(share[1]) / 100)
    if (step := STEP.fullmatch(text)) and behavior:
        return Seek(behavior=behavior, step=round(float(step[1].replace("_", "")) * UNITS[step[2].lower()]))
    raise ValueError(text)


def seek_prompt(behavior: BehaviorView | None) -> PromptScreen:
    """Asks until what is typed is a place. behavior: whose steps are meant."""
    name = behavior.name if behavior is not None else ""
    whose = f" of {safe_text(name)}"
    asked = "a share of the recording like 50%" + (f", or a step{whose} like 120k" if name else "")

    def check(text: str) -> Verdict:
        try:
            seek = typed_seek(text, name)
        except ValueError:
            return Verdict(asked, is_good=False)
        if seek.share is None:
            return Verdict(f"to step {count(seek.step)}{whose}, or to the end if it never got there")
        return Verdict(f"to {seek.share:.0%} of the recording")

    return PromptScreen("Go to", check)
