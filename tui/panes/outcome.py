"""What became of the last key: asked, done or failed, with the file's path."""

from __future__ import annotations

import time
from dataclasses import dataclass

from rich.cells import cell_len

from engine.session.text import safe_text
from engine.session.view import RunView
from tui.lines import Line, Span, Tone, line
from tui.panes.base import Frame, Pane
from tui.text import duration, fit_message, fit_path


@dataclass(slots=True)
class Asked:
    """A command of this screen. Times are of the monotonic clock; settled_at: when its outcome was seen."""

    command_id: str
    label: str
    asked_at: float
    settled_at: float | None = None


class OutcomeLine(Pane):
    """One line above the keys. Owns what this screen has asked for; shows whatever changed last."""

    def __init__(self) -> None:
        super().__init__()
        self._asked: dict[str, Asked] = {}
        self._latest: Asked | None = None
        self._notice: Line = ()

    def ask(self, command_id: str, label: str) -> None:
        """A command was sent: its line appears at once."""
        asked = Asked(command_id, label, time.monotonic())
        self._asked[command_id], self._latest, self._notice = asked, asked, ()

    def notice(self, text: str, tone: Tone = "warning") -> None:
        """Say something that is no command's outcome, until the next one is."""
        self._notice = line(Span(f" {text}", tone))

    @property
    def is_waiting(self) -> bool:
        """Whether a command has no outcome yet."""
        return bool(self._asked)

    def settle(self, view: RunView) -> bool:
        """Take note of the outcomes that `view` knows by now; returns whether there is one more."""
        has_settled = False
        for asked in list(self._asked.values()):
            command = view.commands.get(asked.command_id)
            if command is not None and command.state != "asked":
                asked.settled_at = time.monotonic()
                self._latest, self._notice = asked, ()
                del self._asked[asked.command_id]
                has_settled = True
        return has_settled

    def lines(self, frame: Frame, width: int, height: int) -> list[Line]:
        """One line."""
        if self._notice:
            return [self._notice]
        if self._latest is None:
            return [_where(frame, width)]
        return [outcome_line(self._latest, len(self._asked), frame, width)]


def outcome_line(asked: Asked, num_open: int, frame: Frame, width: int) -> Line:
    """The label, its state and the engine's words; a path at their end is shortened from its left."""
    command, glyphs = frame.view.commands.get(asked.command_id), frame.glyphs
    others = f" ({num_open} open)" if num_open > 1 else ""
    if asked.settled_at is None or command is None:
        return line(Span(f" {glyphs.waiting} {asked.label}: asked{others}", "wait"))
    is_done = command.state == "done"
    took = max(0.0, asked.settled_at - asked.asked_at)
    seconds = f"{took:.1f}s" if took < 60 else duration(took)
    head = f" {glyphs.done if is_done else glyphs.failed} {asked.label}: {command.state} in {seconds}{others}  "
    room = width - cell_len(head)
    message = fit_message(safe_text(command.message), room, glyphs.ellipsis) if room > 8 else ""
    return line(Span(head, "good" if is_done else "bad"), Span(message, "text" if is_done else "bad"))


def _where(frame: Frame, width: int) -> Line:
    """Before the first key: where the run's files go."""
    run = frame.view.run
    if run is None:
        return ()
    told = f"  seed {run.seed} {frame.glyphs.dot} {safe_text(run.device)}"
    return line(
        Span(f" {fit_path(safe_text(run.path), max(10, width - len(told) - 2), frame.glyphs.ellipsis)}{told}", "dim")
    )
