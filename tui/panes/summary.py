"""How the run ended and where its files are."""

from __future__ import annotations

from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.drawing.lines import Line, Span, line, state_tone, wrap
from rl_tui.tui.drawing.text import count, duration, fit, fit_path, left, number, right
from rl_tui.tui.panes.base import Frame, Pane
from rl_tui.tui.panes.checkpoint_words import score_of, score_width

DETAILED = 2  # behaviors that get a line for each of their files


class SummaryPane(Pane):
    """Shown once the run is over."""

    def heading(self, frame: Frame) -> str:
        """Its name."""
        return "Summary"

    def wanted_height(self, frame: Frame, width: int) -> int:
        """All of it."""
        return len(summary_lines(frame, width)) if frame.view.is_over else 1

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """The end in a sentence, then the behaviors."""
        return summary_lines(frame, width) if frame.view.is_over else []


def summary_lines(frame: Frame, width: int) -> list[Line]:
    """The end in a sentence, then each behavior with the newest of its files."""
    view, glyphs = frame.view, frame.glyphs
    took = f" after {duration(view.now - view.started_at)}" if view.started_at is not None else ""
    code = "" if view.exit_code is None else f", exit code {view.exit_code}"
    reason = f": {safe_text(view.reason)}" if view.reason else ""
    sentence = wrap(f"{glyphs.of(view.state)} {view.state}{took}{code}{reason}", width - 2, 3)
    behaviors = list(view.behaviors.values())
    lines = [line(Span(f" {row}", state_tone(view.state))) for row in sentence]
    for behavior in behaviors:
        lines += behavior_lines(behavior, frame, width, is_short=len(behaviors) > DETAILED)
    return lines


def behavior_lines(behavior: BehaviorView, frame: Frame, width: int, is_short: bool) -> list[Line]:
    """How one behavior ended; short: one line with its most useful file."""
    glyphs, measured = frame.glyphs, behavior.best_evaluation
    evaluated = (Span("  best eval. ", "dim"), right(number(measured.mean_return), 8)) if measured is not None else ()
    name = left(fit(safe_text(behavior.name), 16, glyphs.ellipsis), 16)
    head = line(
        Span(f" {glyphs.of(behavior.state)} ", state_tone(behavior.state)),
        Span(name, "strong"),
        f" {right(count(behavior.step), 6)} steps",
        Span("  best checkpoint ", "dim"),
        right(score_of(behavior.best_checkpoint), score_width(behavior.checkpoints)),
        *evaluated,
    )
    files = [("policy", event.path) for _, event in behavior.exports[-1:]]
    files += [("checkpoint", event.path) for _, event in behavior.checkpoints[-1:]]
    if is_short:
        room = width - sum(len(span.text) for span in head) - 3
        path = fit_path(safe_text(files[0][1]), room, glyphs.ellipsis) if files and room > 12 else ""
        return [line(*head, Span(f"  {path}", "dim"))]
    rows = [
        line(Span(f"   {left(kind, 11)}", "dim"), fit_path(safe_text(path), width - 15, glyphs.ellipsis))
        for kind, path in files
    ]
    return [head, *(rows or [line(Span("   no files were written", "dim"))])]
