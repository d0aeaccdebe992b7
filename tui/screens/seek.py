"""Where in a recording to go, as a user types it."""

from __future__ import annotations

import re

from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import BehaviorView
from rl_tui.tui.drawing.text import count
from rl_tui.tui.runs.seeking import Seek
from rl_tui.tui.screens.prompt import PromptScreen, Verdict

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
SHARE = re.compile(r"([0-9]{1,3}(?:\.[0-9]*)?) *%")
STEP = re.compile(r"([0-9][0-9_]{0,17}(?:\.[0-9]*)?) *([kmg]?)", re.IGNORECASE)


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
            return Verdict(f"to step {count(seek.step)}{whose}, or the end where it never came so far")
        return Verdict(f"to {seek.share:.0%} of the recording")

    return PromptScreen("Go to", check)
