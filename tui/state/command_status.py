"""The newest command, and notices to the user."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

from rl_tui.engine.session.view import CommandView, RunView
from rl_tui.tui.drawing.lines import Tone
from rl_tui.tui.state.alert import ShownAlert


@dataclass(frozen=True, slots=True)
class Notice:
    """A message to the user."""

    text: str
    tone: Tone


class CommandStatus:
    """Owned by the app. What changed last: a command, as the run's view has it, or a notice.

    latest: the command, None before the first. alert: what must be noticed, the newest that was shown.
    """

    def __init__(self) -> None:
        self.latest: CommandView | None = None
        self.num_pending = 0
        self.notice: Notice | None = None
        self.alert: ShownAlert | None = None
        self.reported_at = -math.inf  # when a command or a notice changed last, on the monotonic clock
        self._known: tuple[str, str] | None = None  # command id and state

    def say(self, text: str, tone: Tone = "warning") -> None:
        """Show a notice, until a command has news or some seconds have passed."""
        self.notice, self.reported_at = Notice(text, tone), time.monotonic()

    def update(self, view: RunView) -> None:
        """Show what is new of a command. What is not new the first time is not news."""
        self.num_pending = len(view.pending_commands)
        command = view.commands.get(view.newest_command)
        found = ("", "") if command is None or command.name == "Stop" else (command.id, command.state)
        if self._known is not None and found != self._known and command is not None:
            self.latest, self.notice, self.reported_at = replace(command), None, time.monotonic()
        self._known = found
