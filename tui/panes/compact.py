"""What is left of the screen on a small terminal."""

from __future__ import annotations

from engine.session.text import safe_text
from engine.session.view import BehaviorView
from tui.glyphs import Glyphs
from tui.lines import Line, Span, line, pack, state_tone, wrap
from tui.panes.base import Frame, Pane
from tui.panes.behaviors import first_visible
from tui.text import count, left, number, percent, right


class CompactPane(Pane):
    """One line per behavior, without a frame."""

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """The selected behavior stays in sight."""
        behaviors = list(frame.view.behaviors.values())
        first = first_visible(frame.selected, len(behaviors), height)
        shown = behaviors[first : first + height]
        return [compact_line(b, i == frame.selected, frame.glyphs, width) for i, b in enumerate(shown, first)]


def compact_line(behavior: BehaviorView, is_selected: bool, glyphs: Glyphs, width: int) -> Line:
    """State, name, reward, progress: as much as fits."""
    sign = Span(f"{glyphs.of(behavior.state)} ", state_tone(behavior.state))
    name = left(safe_text(behavior.name), min(16, max(8, width - 28)), glyphs.ellipsis)
    parts = [
        line(Span(glyphs.marker if is_selected else " ", "accent"), sign, name),
        line(right(number(behavior.mean_return), 8)),
        line(right(f"{percent(behavior.step, behavior.max_steps)}%", 4)),
        line(Span(left(behavior.state, 8), state_tone(behavior.state))),
        line(Span(f"{count(behavior.steps_per_second)} st/s", "dim")),
    ]
    return pack(parts, width, gap=1)


class TooSmallPane(Pane):
    """Words that fit anywhere."""

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """What is wrong, and that training is not."""
        columns, rows = self.screen.size
        texts = [
            f"terminal too small ({columns}x{rows}), need 40x10 - training goes on",
            f"need 40x10, is {columns}x{rows}",
            "too small",
        ]
        wrapped = (wrap(text, width, len(text)) for text in texts)
        chosen = next((rows for rows in wrapped if len(rows) <= height), [texts[-1]])
        return [line(Span(row, "warning")) for row in chosen]
