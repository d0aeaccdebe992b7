"""What a run has done while no screen showed it."""

from __future__ import annotations

from rl_tui.engine.session.text import counted
from rl_tui.engine.session.view import RunView
from rl_tui.tui.drawing.text import count, duration


def meanwhile(view: RunView) -> str:
    """In one line; "" where a screen shows it."""
    since = view.unseen_since
    if since is None:
        return ""
    steps = sum(b.step - since.steps.get(name, b.first_step) for name, b in view.behaviors.items())
    is_all = since.time == view.started_at
    return (
        f"{'since the start, ' if is_all else 'meanwhile, in '}{duration(view.now - since.time)}"
        f"{' ago' if is_all else ''}: {count(max(steps, 0))} steps,"
        f" {counted(view.num_saved - since.num_saved, 'checkpoint')},"
        f" {counted(view.num_warnings - since.num_warnings, 'warning')}"
    )
