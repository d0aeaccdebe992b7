"""Text for the clipboard of the user's terminal, also over SSH: by the escape sequence OSC 52."""

from __future__ import annotations

import os
from typing import Any

from textual.app import App

LARGEST_BYTES = 100_000  # xterm takes no more, base64 included in 133 kB


def copy(app: App[Any], text: str) -> str:
    """Send the text to the terminal, cut off where it is too long; returns a message for the user.

    Whether the terminal accepts it cannot be known. `app.clipboard` is what was sent.
    """
    encoded = text.encode(errors="replace")[:LARGEST_BYTES]
    kept = encoded.decode(errors="ignore")
    app.copy_to_clipboard(kept)
    of = f" of {len(text)}" if len(kept) < len(text) else ""
    need = "; tmux passes it on with set-clipboard on" if "TMUX" in os.environ else ""
    return f"copied {len(kept)}{of} characters (OSC 52{need}): {text[:200]}"
