"""What a screen, or a program, needs of a run."""

from __future__ import annotations

from typing import Protocol

from rl_tui.engine.session.bus import Subscription
from rl_tui.engine.session.live_view import LiveView
from rl_tui.engine.session.messages import Command, Hint
from rl_tui.engine.session.watching import Watching


class Session(Protocol):
    """A run in this process, or behind a socket. Any thread."""

    @property
    def live(self) -> LiveView:
        """Its view, and copies of it: snapshots."""

    @property
    def watching(self) -> Watching:
        """Its policies, at play."""

    def send(self, message: Command | Hint) -> None:
        """Send it and return at once; the outcome of a command is published as CommandFinished with its id."""

    def subscribe(self) -> Subscription:
        """A mailbox with every event from now on."""

    def wait(self, timeout: float) -> bool:
        """Whether the run is over, waiting at most `timeout` seconds for it."""
