"""Escape sequences for the window of the terminal: its title, and notices outside of it."""

from __future__ import annotations

from collections.abc import Mapping

from rl_tui.engine.session.text import safe_text
from rl_tui.tui.drawing.text import fit

LONGEST_NOTICE = 200  # characters
PUSH_TITLE, POP_TITLE = "\x1b[22;0t", "\x1b[23;0t"  # XTWINOPS: keep the title there is, and bring it back


def title_sequence(title: str, environment: Mapping[str, str]) -> str:
    """What sets the title, in tmux that of the pane; "" where it would be printed instead. title: safe to show."""
    return "" if environment.get("TERM") == "linux" else f"\x1b]2;{title}\x1b\\"


def notice_sequence(text: str, environment: Mapping[str, str]) -> str:
    """What shows `text` outside the terminal's window; "" where it would be printed instead."""
    if environment.get("TERM") == "linux":
        return ""
    plain = fit(safe_text(text).replace(";", ","), LONGEST_NOTICE)  # a semicolon would start another field
    is_iterm = any(environment.get(name, "").startswith("iTerm") for name in ("LC_TERMINAL", "TERM_PROGRAM"))
    knows_only_9 = is_iterm or "ConEmuPID" in environment
    sequence = f"\x1b]9;{plain}\x1b\\" if knows_only_9 else f"\x1b]777;notify;rl-tui;{plain}\x1b\\"
    if "TMUX" in environment:  # needs its allow-passthrough
        return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    return sequence
