"""What became of the user's commands, and other short words to the user."""

from __future__ import annotations

import time
from dataclasses import dataclass

from rl_tui.engine.session.view import CommandView, RunView
from rl_tui.tui.drawing.lines import Tone

SAID_SECONDS = 10.0  # how long words that are no command's outcome stay


@dataclass(slots=True)
class Asked:
    """A command of this screen. asked_at: on the monotonic clock. outcome: None, or what came of it `seconds` later."""

    command_id: str
    label: str
    asked_at: float
    outcome: CommandView | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Said:
    """Words to the user, and when they were said on the monotonic clock."""

    text: str
    tone: Tone
    at: float


class Outcomes:
    """Owned by the app. Knows what was asked for and is not settled yet, and what changed last."""

    def __init__(self) -> None:
        self.latest: Asked | None = None
        self.said: Said | None = None
        self._asked: dict[str, Asked] = {}

    def ask(self, command_id: str, label: str) -> None:
        """A command was sent."""
        asked = Asked(command_id, label, time.monotonic())
        self._asked[command_id], self.latest, self.said = asked, asked, None

    def say(self, text: str, tone: Tone = "warning") -> None:
        """Words that are no command's outcome, until the next one is or some seconds have passed."""
        self.said = Said(text, tone, time.monotonic())

    @property
    def num_open(self) -> int:
        """How many commands have no outcome yet."""
        return len(self._asked)

    def is_open(self, command_id: str) -> bool:
        """Whether that command has no outcome yet."""
        return command_id in self._asked

    def forget(self, command_id: str) -> None:
        """What becomes of that command is no longer of interest."""
        self._asked.pop(command_id, None)

    def settle(self, view: RunView) -> bool:
        """Take note of the outcomes that `view` knows by now; returns whether there is one more."""
        has_settled = False
        for asked in list(self._asked.values()):
            command = view.commands.get(asked.command_id)
            if command is not None and command.state != "asked":
                asked.outcome, asked.seconds = command, time.monotonic() - asked.asked_at
                self.latest, self.said = asked, None
                del self._asked[asked.command_id]
                has_settled = True
        return has_settled
