"""The checkpoints of the selected behavior: the best, then the newest first."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rl_tui.engine.session.messages import CheckpointSaved
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.drawing.lines import Line, Span, cells, line, pack
from rl_tui.tui.drawing.text import count, duration, fit_path, right, size
from rl_tui.tui.panes.base import BEAT, Frame
from rl_tui.tui.panes.checkpoint_words import score_of, score_width
from rl_tui.tui.panes.list import Entry, ListPane


class CheckpointsPane(ListPane):
    """A line per checkpoint that is still on disk; a star marks the best."""

    topic = "checkpoints"
    seconds = BEAT  # their ages show seconds
    cursor_width = 1

    def inputs(self, frame: Frame) -> object:
        """The checkpoints."""
        behavior = frame.behavior
        return super().inputs(frame), [saved.path for _, saved in behavior.checkpoints] if behavior else None

    def heading(self, frame: Frame) -> str:
        """Whose they are, and how many."""
        behavior = frame.behavior
        if behavior is None or not behavior.checkpoints:
            return "Checkpoints"
        whose = f" of {safe_text(behavior.name)}" if len(frame.view.behaviors) > 1 else ""
        return f"Checkpoints{whose} {frame.glyphs.dot} {len(behavior.checkpoints)}"

    def empty(self, frame: Frame) -> str:
        """How to come by one."""
        can_save = frame.view.run is not None and frame.view.state in ("training", "paused") and not frame.refuses
        return "none yet; c saves one now" if can_save else "none"

    def entries(self, frame: Frame) -> Sequence[Entry]:
        """The best, then the newest first."""
        behavior = frame.behavior
        newest_first = behavior.checkpoints[::-1] if behavior else []
        best = behavior.best_checkpoint if behavior is not None else None
        ordered = sorted(newest_first, key=lambda entry: entry[1] is not best)
        return [
            Entry(
                saved.path,
                safe_text(f"{count(saved.step)} {score_of(saved)} {saved.reason} {saved.path}"),
                partial(checkpoint_line, saved, frame.time - at, saved is best, frame),
            )
            for at, saved in ordered
        ]


def checkpoint_line(saved: CheckpointSaved, age: float, is_best: bool, frame: Frame, width: int) -> Line:
    """Step, return or loss, age, size, why it was saved, and as much of the path's end as fits."""
    glyphs, checkpoints = frame.glyphs, frame.behavior.checkpoints if frame.behavior is not None else []
    parts = [
        line(
            Span(f"{glyphs.best if is_best else ' '} ", "warning"),
            Span(right(count(saved.step), 5)),
            Span(" " + right(score_of(saved), score_width(checkpoints))),
        ),
        line(Span(right(f"{duration(age)} ago", 10), "dim")),
        line(Span(right(size(saved.size_bytes), 5), "dim")),
        line(Span("best    " if is_best else saved.reason.ljust(8), "dim")),
    ]
    row = pack(parts, width, gap=2)
    room = width - cells(row) - 2
    return (
        line(*row, Span("  " + fit_path(safe_text(saved.path), room, glyphs.ellipsis), "faint")) if room > 24 else row
    )
