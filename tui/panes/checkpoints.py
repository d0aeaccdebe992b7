"""The checkpoints of the selected behavior, newest first."""

from __future__ import annotations

from engine.session.messages import CheckpointSaved
from engine.session.text import safe_text
from tui.lines import Line, Span, line, pack
from tui.panes.base import Frame, Pane
from tui.text import count, duration, fit_path, number, right, size


class CheckpointsPane(Pane):
    """A line per checkpoint that is still on disk; a star marks the best."""

    seconds = 0.9  # their ages tell seconds

    def inputs(self, frame: Frame) -> object:
        """The checkpoints."""
        return [saved.path for _, saved in frame.behavior.checkpoints] if frame.behavior else None

    def heading(self, frame: Frame) -> str:
        """How many there are."""
        behavior = frame.behavior
        return f"Checkpoints {len(behavior.checkpoints)}" if behavior and behavior.checkpoints else "Checkpoints"

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """The newest, and always the best."""
        behavior = frame.behavior
        if behavior is None or not behavior.checkpoints:
            return [line(Span(" none yet; c saves one now", "dim"))]
        newest_first = behavior.checkpoints[::-1]
        best = next((at for at, (_, saved) in enumerate(newest_first) if saved.is_best), None)
        shown = newest_first[:height]
        if best is not None and best >= height:
            shown = [*newest_first[: height - 1], newest_first[best]]
        return [
            checkpoint_line(saved, frame.time - at, at_index == best, frame, width)
            for at_index, (at, saved) in ((newest_first.index(entry), entry) for entry in shown)
        ]


def checkpoint_line(saved: CheckpointSaved, age: float, is_best: bool, frame: Frame, width: int) -> Line:
    """Step, reward, age, size, why it was saved, and as much of the path's end as fits."""
    glyphs = frame.glyphs
    parts = [
        line(
            Span(f" {glyphs.best if is_best else ' '} ", "warning"),
            Span(right(count(saved.step), 5)),
            Span(right(number(saved.mean_return), 9)),
        ),
        line(Span(right(f"{duration(age)} ago", 10), "dim")),
        line(Span(right(size(saved.size_bytes), 5), "dim")),
        line(Span("best" if is_best else saved.reason, "dim")),
    ]
    row = pack(parts, width, gap=2)
    room = width - sum(len(span.text) for span in row) - 3
    return (
        line(*row, Span("  " + fit_path(safe_text(saved.path), room, glyphs.ellipsis), "faint")) if room > 24 else row
    )
