"""The line above the keys: alerts, and the outcome of the last key: requested, done or failed, with the file's path."""

from __future__ import annotations

import time
from collections.abc import Mapping

from rich.cells import cell_len

from rl_tui.engine.session.text import safe_text
from rl_tui.engine.session.view import CommandView
from rl_tui.tui.drawing.lines import Line, Span, Tone, cells, clip, flush, line
from rl_tui.tui.drawing.text import duration, fit, fit_message, fit_path
from rl_tui.tui.panes.base import Frame, Pane
from rl_tui.tui.panes.first_keys import first_keys_line
from rl_tui.tui.state.alert import Severity, ShownAlert
from rl_tui.tui.state.command_status import CommandStatus
from rl_tui.tui.state.user_folders import seen_from_here

NOTICE_SECONDS = 10.0  # how long an alert, a notice or an outcome stays
ANSWER_SECONDS = 3.0  # how long alerts wait for the outcome of a key
ALERT_TONES: Mapping[Severity, Tone] = {"error": "alarm", "warning": "flag", "information": "strong"}


class OutcomeLine(Pane):
    """Whatever changed last, for some seconds: an alert, a command or a notice."""

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """One line."""
        status, now = frame.status, time.monotonic()
        latest, notice, alert = status.latest, status.notice, status.alert
        is_waiting = notice is None and latest is not None and latest.state == "pending"
        has_report = is_waiting or now - status.reported_at < NOTICE_SECONDS
        if alert is not None and now - alert.at < NOTICE_SECONDS and not is_answered(status, now):
            return [alert_line(alert, frame, width)]
        if has_report and notice is not None:
            return [line(Span(f" {fit_message(safe_text(notice.text), width - 2)}", notice.tone))]
        if has_report and latest is not None:
            return [outcome_line(latest, status.num_pending, frame, width)]
        where = _where(frame, width)
        if not frame.is_new or frame.view.is_over:
            return [where]
        return [flush(first_keys_line(frame, width), line(*where, " "), width)]


def is_answered(status: CommandStatus, now: float) -> bool:
    """Whether the answer to a key is so new that no alert takes its place."""
    return now - status.reported_at < ANSWER_SECONDS


def alert_line(shown: ShownAlert, frame: Frame, width: int) -> Line:
    """Whom it is about, what there is to say, and the key of the screen with all of it: the list of warnings, or where
    a run has ended well, that of its checkpoints, of which the line names the best."""
    alert, glyphs = shown.alert, frame.glyphs
    is_good = alert.severity == "information" and not shown.num_more
    key = frame.keymap.of_id("checkpoints" if is_good else "warnings").shown
    sign = {"error": f"{glyphs.failed} ", "warning": f"{glyphs.warning} ", "information": ""}[alert.severity]
    title = Span(f" {sign}{safe_text(alert.title)} ", ALERT_TONES[alert.severity])
    text = safe_text(alert.text)
    is_cut = cell_len(title.text + text) + 2 > width
    more = f" {shown.num_more} more " if shown.num_more else " more " if is_cut else ""
    end = line(Span(f" {key}" if more else "", "accent"), Span(more, "dim"))
    room = max(0, width - cell_len(title.text) - cells(end) - 2)  # with a blank on both sides
    return flush(clip(line(title, " ", fit(text, room, glyphs.ellipsis)), width, glyphs.ellipsis), end, width)


def outcome_line(command: CommandView, num_pending: int, frame: Frame, width: int) -> Line:
    """The label, its state and the engine's words; a path at their end is shortened from its left."""
    glyphs = frame.glyphs
    others = f" ({num_pending} pending)" if num_pending > 1 else ""
    if command.state == "pending":
        return line(Span(f" {glyphs.waiting} {command.label}: requested{others}", "wait"))
    is_done = command.state == "done"
    seconds = f"{command.seconds:.1f}s" if command.seconds < 60 else duration(command.seconds)
    head = f" {glyphs.done if is_done else glyphs.failed} {command.label}: {command.state} in {seconds}{others}  "
    room, text = width - cell_len(head), safe_text(command.message)
    if is_done or cell_len(text) <= room:
        message = fit_message(text, room, glyphs.ellipsis) if room > 8 else ""
        return line(Span(head, "good" if is_done else "bad"), Span(message, "text" if is_done else "bad"))
    end = line(Span(f" {frame.keymap.of_id('warnings').shown}", "accent"), Span(" more ", "dim"))
    message = fit(text, max(0, room - cells(end) - 1), glyphs.ellipsis)
    failed = line(Span(fit(head, width - cells(end) - 1, glyphs.ellipsis), "bad"), Span(message, "bad"))
    return flush(clip(failed, width - cells(end), glyphs.ellipsis), end, width)


def _where(frame: Frame, width: int) -> Line:
    """Before the first key: where the run's files go."""
    run = frame.view.run
    if run is None:
        return ()
    surroundings = f"  seed {run.seed} {frame.glyphs.dot} {safe_text(run.device)}"
    path = fit_path(safe_text(seen_from_here(run.path)), max(10, width - len(surroundings) - 2), frame.glyphs.ellipsis)
    return line(Span(f" {path}{surroundings}", "dim"))
