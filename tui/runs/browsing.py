"""A screen that shows the runs of a folder, without a run of its own."""

from __future__ import annotations

import time

from rl_tui.engine.session.bus import EventBus, Subscription
from rl_tui.engine.session.command_desk import CommandDesk
from rl_tui.engine.session.live_view import LiveView
from rl_tui.engine.session.messages import Command, Hint
from rl_tui.engine.session.view import RunView
from rl_tui.engine.session.watching import Unwatchable

NO_RUN = "there is no run on this screen"


class NoRun:
    """A Session without a run that goes on. view: what it shows, if not a screen without any run."""

    watching = Unwatchable(NO_RUN)

    def __init__(self, view: RunView | None = None) -> None:
        self._bus = EventBus(time.time)
        self.live = LiveView(self.subscribe(), view or no_view())
        self._desk = CommandDesk(self._bus)

    def send(self, message: Command | Hint) -> None:
        """Refused."""
        self._desk.answer(message, lambda _: (False, NO_RUN))

    def subscribe(self) -> Subscription:
        """A mailbox that stays empty."""
        return self._bus.subscribe()

    def wait(self, timeout: float) -> bool:
        """Always true: there is nothing to wait for."""
        return True


def no_view() -> RunView:
    """The view of such a screen."""
    return RunView(state="finished")


def is_of_no_run(view: RunView) -> bool:
    """Whether the screen has no run and will not have one."""
    return view.run is None and view.state == "finished"
