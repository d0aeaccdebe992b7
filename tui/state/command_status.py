"""The status of the user's commands, and notices to the user."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from rl_tui.engine.session.messages import Command
from rl_tui.engine.session.view import CommandView, RunView
from rl_tui.tui.drawing.lines import Tone
from rl_tui.tui.state.alert import ShownAlert


@dataclass(slots=True)
class PendingCommand:
    """A command of this screen. sent_at: on the monotonic clock. outcome: None, or its result `seconds` later."""

    command: Command
    label: str
    sent_at: float
    outcome: CommandView | None = None
    seconds: float = 0.0

    @property
    def changed_at(self) -> float:
        """When it was sent, or has ended; on the monotonic clock."""
        return self.sent_at + self.seconds


@dataclass(frozen=True, slots=True)
class Notice:
    """A message to the user. at: on the monotonic clock."""

    text: str
    tone: Tone
    at: float


class CommandStatus:
    """Owned by the app. Knows the commands without an outcome, and what changed last: a command or a notice.

    alert: what must be noticed, the newest that was shown.
    """

    def __init__(self) -> None:
        self.latest: PendingCommand | None = None
        self.notice: Notice | None = None
        self.alert: ShownAlert | None = None
        self._pending: dict[str, PendingCommand] = {}

    def add(self, command: Command, label: str) -> None:
        """A command was sent."""
        pending = PendingCommand(command, label, time.monotonic())
        self._pending[command.id], self.latest, self.notice = pending, pending, None

    def say(self, text: str, tone: Tone = "warning") -> None:
        """Show a notice, until a command has news or some seconds have passed."""
        self.notice = Notice(text, tone, time.monotonic())

    @property
    def reported_at(self) -> float:
        """When a command or a notice changed last, on the monotonic clock; -inf before the first."""
        if self.notice is not None:
            return self.notice.at
        return self.latest.changed_at if self.latest is not None else -math.inf

    @property
    def pending(self) -> list[Command]:
        """The commands without an outcome, oldest first."""
        return [each.command for each in self._pending.values()]

    def forget(self, command_id: str) -> None:
        """The outcome of that command is of no interest any more."""
        self._pending.pop(command_id, None)

    def update(self, view: RunView) -> bool:
        """Read outcomes from `view`; returns whether there is a new one."""
        has_news = False
        for pending in list(self._pending.values()):
            command = view.commands.get(pending.command.id)
            if command is not None and command.state != "pending":
                pending.outcome, pending.seconds = command, time.monotonic() - pending.sent_at
                self.latest, self.notice = pending, None
                del self._pending[pending.command.id]
                has_news = True
        return has_news
