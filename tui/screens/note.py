"""The prompt for a note on the run."""

from __future__ import annotations

from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import BehaviorView
from rl_tui.tui.screens.prompt import PromptScreen, Verdict

MAX_CHARACTERS = 200  # about two lines of the log; more is for an editor


def note_prompt(behavior: BehaviorView | None) -> PromptScreen:
    """Asks for one line; its first subject is the behavior, if there is one, its last the run."""
    subjects = ("the run",) if behavior is None else (safe_text(behavior.name), "the run")
    return PromptScreen("Note", _verdict, subjects=subjects)


def _verdict(text: str) -> Verdict:
    if not text:
        return Verdict("one line: what you saw, or what you changed", is_good=False)
    if len(text) > MAX_CHARACTERS:
        return Verdict(f"{len(text)} characters; at most {MAX_CHARACTERS} are kept", is_good=False)
    return Verdict("kept with the run's events; charts mark where it was")
