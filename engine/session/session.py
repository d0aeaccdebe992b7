"""How a front end talks to a run, wherever that runs."""

from __future__ import annotations

from typing import Protocol

from rl_tui.engine.session.bus import Subscription
from rl_tui.engine.session.messages import Command


class Session(Protocol):
    """A run in this process, or later behind a socket."""

    def send(self, command: Command) -> None:
        """Send the command and return at once; its outcome is published as CommandFinished with the same id."""

    def subscribe(self) -> Subscription:
        """A mailbox with every event from now on."""
