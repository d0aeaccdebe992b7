"""The title of the terminal's window or tab: progress and state of the run for who looks at another one."""

from __future__ import annotations

from collections.abc import Mapping

from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import RunView
from rl_tui.tui.drawing.text import fit, percent
from rl_tui.tui.panes.state_line import share_done

TITLE_SECONDS = 1.0  # from one title to the next
LONGEST_NAME = 40  # cells: a tab has less
PUSH, POP = "\x1b[22;0t", "\x1b[23;0t"  # XTWINOPS: keep the title there is, and bring it back


def title_of(view: RunView, config_name: str) -> str:
    """rl-tui CartPole 42% training."""
    share = share_done(view)
    done = f" {percent(share, 1.0)}%" if share is not None else ""
    name = fit(safe_text(view.run.run_id if view.run else config_name), LONGEST_NAME)
    return " ".join(f"rl-tui {name}{done} {view.state}".split())


def sequence_of(title: str, environment: Mapping[str, str]) -> str:
    """What sets the title, in tmux that of the pane; "" where it would be printed instead. title: safe to show."""
    return "" if environment.get("TERM") == "linux" else f"\x1b]2;{title}\x1b\\"
