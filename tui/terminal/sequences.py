"""Escape sequences for the window of the terminal: its title, notices outside of it, and the clipboard (OSC 52)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from textual.app import App

from rl_tui.engine.session.text import safe_text
from rl_tui.tui.drawing.text import fit

LARGEST_COPY = 100_000  # bytes: xterm takes no more, base64 included in 133 kB
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


def copy_text(app: App[Any], text: str) -> str:
    """Send the text to the terminal, cut off where it is too long; returns a message for the user.

    Whether the terminal accepts it cannot be known. `app.clipboard` is what was sent.
    """
    encoded = text.encode(errors="replace")[:LARGEST_COPY]
    kept = encoded.decode(errors="ignore")
    app.copy_to_clipboard(kept)
    of = f" of {len(text)}" if len(kept) < len(text) else ""
    need = "; tmux passes it on with set-clipboard on" if "TMUX" in os.environ else ""
    return f"copied {len(kept)}{of} characters (OSC 52{need}): {text[:200]}"
