"""A screen that shows the runs of a folder, without a run of its own."""

from __future__ import annotations

import time

from rl_tui.engine.session.bus import EventBus, Subscription
from rl_tui.engine.session.command_desk import CommandDesk
from rl_tui.engine.session.messages import Command
from rl_tui.engine.session.view import RunView

NO_RUN = "there is no run on this screen"


class NoRun:
    """A Session without a run."""

    def __init__(self) -> None:
        self._bus = EventBus(time.time)
        self._desk = CommandDesk(self._bus)

    def send(self, command: Command) -> None:
        """Refused."""
        self._desk.answer(command, lambda _: (False, NO_RUN))

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
