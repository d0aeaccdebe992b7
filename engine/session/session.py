"""What a front end may ask of a run, wherever that run lives."""

from __future__ import annotations

from typing import Protocol

from rl_tui.engine.session.bus import Subscription
from rl_tui.engine.session.messages import Command


class Session(Protocol):
    """A run, seen from outside: here in this process, or later at the end of a socket."""

    def send(self, command: Command) -> None:
        """Hand the command over and return at once; its outcome comes as CommandFinished with the same id."""

    def subscribe(self) -> Subscription:
        """A mailbox with every event from now on."""
