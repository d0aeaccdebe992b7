"""The top line of a game: what is played, whose turn it is or how it ended, and how the games before have ended."""

from __future__ import annotations

from rl_tui.engine.session.games import GameTurn, Result, Tally
from rl_tui.engine.session.text import safe_text
from rl_tui.tui.drawing.glyphs import Glyphs
from rl_tui.tui.drawing.lines import Line, Span, line
from rl_tui.tui.drawing.text import fit
from rl_tui.tui.panes.base import Frame, Pane
from rl_tui.tui.panes.state_line import CROWDED, Part, arranged

NARROWEST = 12  # of a name


class GameLine(Pane):
    """One line. run: its name, as it was typed. turn: None before the first. is_waiting: for the environment."""

    def __init__(self, run: str) -> None:
        super().__init__()
        self._run = safe_text(run)
        self.turn: GameTurn | None = None
        self.is_waiting = False

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """As much of it as fits."""
        ellipsis = frame.glyphs.ellipsis
        names = [
            line(Span(fit(self._run, room, ellipsis), "strong")) for room in (max(NARROWEST, width // 3), NARROWEST)
        ]
        brand = [line(Span("rl-tui ", "dim"), *names[0])] if width >= CROWDED else []
        parts = [Part(1, (*brand, *names)), Part(0, (self._state(frame.glyphs),))]
        if self.turn is not None:
            parts.append(Part(3, (line(f"game {self.turn.scene.episode:,}"),)))
        if self.turn is not None and self.turn.opponent:
            parts.append(Part(2, (tally_line(self.turn.tally),)))
        return [line(" ", *arranged(parts, width - 1, 2 if width < CROWDED else 3))]

    def _state(self, glyphs: Glyphs) -> Line:
        turn = self.turn
        if turn is not None and turn.scene.state == "failed":
            return line(Span(f"{glyphs.failed} FAILED", "bad"))
        if turn is not None and turn.is_over and not self.is_waiting:
            return line(result_span(turn.result, glyphs))
        if turn is None or self.is_waiting:
            return line(Span(f"{glyphs.waiting} WAITING", "wait"))
        return line(Span(f"{glyphs.running} YOUR TURN", "good"))


def result_span(result: Result | None, glyphs: Glyphs) -> Span:
    """How a game ended. None: without opponents."""
    match result:
        case "won":
            return Span(f"{glyphs.done} YOU WON", "good")
        case "lost":
            return Span(f"{glyphs.failed} YOU LOST", "bad")
        case "drawn":
            return Span(f"{glyphs.stopped} DRAWN", "warning")
        case None:
            return Span(f"{glyphs.stopped} GAME OVER", "text")


def tally_line(tally: Tally) -> Line:
    """Of games, in words."""
    return line(f"won {tally.won:,}  drawn {tally.drawn:,}  lost {tally.lost:,}")
