"""The top line while a person plays: what is played, whose turn it is, and what the file will hold."""

from __future__ import annotations

from rl_tui.engine.session.playing import Turn
from rl_tui.engine.session.text import counted, safe_text
from rl_tui.tui.drawing.lines import Line, Span, line
from rl_tui.tui.drawing.text import fit, fit_path
from rl_tui.tui.panes.base import Frame, Pane
from rl_tui.tui.panes.state_line import CROWDED, Part, arranged

NARROWEST = 12  # of a name or a path


class PlayLine(Pane):
    """One line. env: its name. file: as it was typed. turn: None before the first. is_waiting: for the environment."""

    def __init__(self, env: str, file: str) -> None:
        super().__init__()
        self._env, self._file = safe_text(env), safe_text(file)
        self.turn: Turn | None = None
        self.is_waiting = False

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """As much of it as fits."""
        ellipsis = frame.glyphs.ellipsis
        named = self._env, self._env.rpartition(":")[2]
        names = [line(Span(fit(name, max(NARROWEST, width // 3), ellipsis), "strong")) for name in named]
        names += [line(Span(fit(named[1], NARROWEST, ellipsis), "strong"))]
        brand = [line(Span("rl-tui ", "dim"), *names[0])] if width >= CROWDED else []
        paths = [fit_path(self._file, max(NARROWEST, width // share), ellipsis) for share in (3, 6)]
        parts = [
            Part(1, (*brand, *names)),
            Part(0, (self._state(frame),)),
            Part(2, (line(Span(self._kept())),)),
            Part(3, tuple(line(Span(f"q writes {path}", "dim")) for path in paths)),
        ]
        return [line(" ", *arranged(parts, width - 1, 2 if width < CROWDED else 3))]

    def _state(self, frame: Frame) -> Line:
        glyphs = frame.glyphs
        if self.turn is not None and self.turn.scene.state == "failed":
            return line(Span(f"{glyphs.failed} FAILED", "bad"))
        if self.turn is None or self.is_waiting:
            return line(Span(f"{glyphs.waiting} WAITING", "wait"))
        return line(Span(f"{glyphs.running} YOUR TURN", "good"))

    def _kept(self) -> str:
        if self.turn is None or not self.turn.scene.returns:
            return "no complete episode yet"
        return f"{counted(len(self.turn.scene.returns), 'episode')}, {counted(self.turn.num_steps, 'step')} kept"
