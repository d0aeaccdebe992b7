"""The outcome of the last key: requested, done or failed, with the file's path."""

from __future__ import annotations

import time

from rich.cells import cell_len

from rl_tui.engine.session.text import safe_text
from rl_tui.tui.drawing.lines import Line, Span, flush, line
from rl_tui.tui.drawing.text import duration, fit_message, fit_path
from rl_tui.tui.panes.base import Frame, Pane
from rl_tui.tui.panes.first_keys import first_keys_line
from rl_tui.tui.state.command_status import PendingCommand
from rl_tui.tui.state.user_folders import seen_from_here

NOTICE_SECONDS = 10.0  # how long a notice stays


class OutcomeLine(Pane):
    """One line above the keys: whatever changed last."""

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """One line."""
        status = frame.status
        if status.notice is not None and time.monotonic() - status.notice.at < NOTICE_SECONDS:
            return [line(Span(f" {fit_message(safe_text(status.notice.text), width - 2)}", status.notice.tone))]
        if status.latest is None:
            where = _where(frame, width)
            if not frame.is_new or frame.view.is_over:
                return [where]
            return [flush(first_keys_line(frame, width), line(*where, " "), width)]
        return [outcome_line(status.latest, status.num_pending, frame, width)]


def outcome_line(pending: PendingCommand, num_pending: int, frame: Frame, width: int) -> Line:
    """The label, its state and the engine's words; a path at their end is shortened from its left."""
    command, glyphs = pending.outcome, frame.glyphs
    others = f" ({num_pending} pending)" if num_pending > 1 else ""
    if command is None:
        return line(Span(f" {glyphs.waiting} {pending.label}: requested{others}", "wait"))
    is_done = command.state == "done"
    seconds = f"{pending.seconds:.1f}s" if pending.seconds < 60 else duration(pending.seconds)
    head = f" {glyphs.done if is_done else glyphs.failed} {pending.label}: {command.state} in {seconds}{others}  "
    room = width - cell_len(head)
    message = fit_message(safe_text(command.message), room, glyphs.ellipsis) if room > 8 else ""
    return line(Span(head, "good" if is_done else "bad"), Span(message, "text" if is_done else "bad"))


def _where(frame: Frame, width: int) -> Line:
    """Before the first key: where the run's files go."""
    run = frame.view.run
    if run is None:
        return ()
    surroundings = f"  seed {run.seed} {frame.glyphs.dot} {safe_text(run.device)}"
    path = fit_path(safe_text(seen_from_here(run.path)), max(10, width - len(surroundings) - 2), frame.glyphs.ellipsis)
    return line(Span(f" {path}{surroundings}", "dim"))
