"""What is left of the screen on a small terminal."""

from __future__ import annotations

from rl_tui.engine.session.behavior_view import BehaviorView
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.drawing.lines import Line, Span, line, pack, wrap
from rl_tui.tui.drawing.text import count, left, number, percent, right
from rl_tui.tui.panes.base import Frame, Pane
from rl_tui.tui.panes.behaviors import first_visible, state_sign
from rl_tui.tui.panes.environments import has_only_notice, notice_lines
from rl_tui.tui.panes.league_words import rating_text

WARNING_LINES = 3  # that the newest warning may take where no behavior needs them


class CompactPane(Pane):
    """One line per behavior, without a frame, and below them the newest warning."""

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """The selected behavior stays visible."""
        if has_only_notice(frame.view):
            return notice_lines(frame, width, height)
        behaviors = list(frame.view.behaviors.values())
        warning = warning_lines(frame, width, min(WARNING_LINES, max(1, height - len(behaviors))))
        room = height - len(warning)
        first = first_visible(frame.selected, len(behaviors), room)
        shown = behaviors[first : first + room]
        return [*(compact_line(b, i == frame.selected, frame, width) for i, b in enumerate(shown, first)), *warning]


def compact_line(behavior: BehaviorView, is_selected: bool, frame: Frame, width: int) -> Line:
    """State, name, reward or rating, progress: as much as fits."""
    state = state_sign(behavior, frame)
    sign, _, word = state.text.partition(" ")
    name = left(safe_text(behavior.name), min(16, max(8, width - 28)), frame.glyphs.ellipsis)
    value = f"elo {rating_text(behavior.rating)}" if behavior.plays_itself else number(behavior.mean_return)
    parts = [
        line(Span(frame.glyphs.marker if is_selected else " ", "accent"), Span(f"{sign} ", state.tone), name),
        line(right(value, 8)),
        line(right(f"{percent(behavior.step, behavior.max_steps)}%", 4)),
        line(Span(left(word, 8), state.tone)),
        line(Span(f"{count(behavior.steps_per_second)} st/s", "dim")),
    ]
    return pack(parts, width, gap=1)


def warning_lines(frame: Frame, width: int, max_lines: int) -> list[Line]:
    """The newest warning in words, and of how many it is; nothing where there is none."""
    warnings = frame.view.warnings
    if not warnings or max_lines < 1:
        return []
    _, newest = max(warnings.values(), key=lambda warned: warned[0])
    others = f"newest of {len(warnings)}: " if len(warnings) > 1 else ""
    whose = f"{newest.behavior}: " if newest.behavior else ""
    words = f"{frame.glyphs.warning} {others}{safe_text(whose + newest.message)}"
    return [line(Span(f" {row}", "warning")) for row in wrap(words, width - 2, max_lines)]


class TooSmallPane(Pane):
    """Words that fit anywhere. meanwhile: what is not affected; "" for the run."""

    def __init__(self, meanwhile: str = "") -> None:
        super().__init__()
        self._meanwhile = meanwhile

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """What is wrong, and what is not; then the newest warning."""
        columns, rows = self.screen.size
        meanwhile = self._meanwhile or "the run is over" if frame.view.is_over else "training goes on"
        texts = [
            f"terminal too small ({columns}x{rows}), need 40x10 - {meanwhile}",
            f"need 40x10, is {columns}x{rows}",
            "too small",
        ]
        wrapped = (wrap(text, width, len(text)) for text in texts)
        chosen = next((rows for rows in wrapped if len(rows) <= height), [texts[-1]])
        return [
            *(line(Span(row, "warning")) for row in chosen),
            *warning_lines(frame, width, height - len(chosen)),
        ]
