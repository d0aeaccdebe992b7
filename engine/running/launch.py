"""A run that may not exist yet: a front end appears first, while torch is imported."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from rl_tui.engine.errors import RlTuiError
from rl_tui.engine.process.imports import imports_that_stay
from rl_tui.engine.process.tracebacks import forget_locals, name_and_text
from rl_tui.engine.running.hooks import NO_HOOKS, Hooks
from rl_tui.engine.running.threads import UiPriority, spawn
from rl_tui.engine.running.watching.service import WatchService
from rl_tui.engine.session.attendance import Attendance
from rl_tui.engine.session.bus import EventBus, Subscription
from rl_tui.engine.session.command_desk import CommandDesk
from rl_tui.engine.session.live_view import LiveView
from rl_tui.engine.session.messages import (
    Attend,
    Command,
    Envelope,
    Hint,
    RunStarted,
    RunStateChanged,
    Stop,
    TakeControl,
    YieldToScreen,
)
from rl_tui.engine.storage.file_names import EVENTS

if TYPE_CHECKING:
    from rl_tui.engine.config.run import RunConfig
    from rl_tui.engine.remote.server import SessionServer
    from rl_tui.engine.running.ranks.requested import Ranks

COMMANDS_WAITING = 100  # more keys than a user presses in a coordinator's tick
STOPS_WAITING = 10  # room for stops only: a run can always be stopped
FREEING_SECONDS = 2.0  # for what a run still holds when it is over


class Launch:
    """A Session from the first moment on. `start` builds and runs the run in the thread `coordinator`.

    watching: shows its policies once it has been built, also after its end. error: why the run could not start.
    failure: the same, or what else ended the run badly; an internal error is none of ours.
    """

    def __init__(self, bus: EventBus):
        self.error: RlTuiError | None = None
        self.failure: BaseException | None = None
        self.watching = WatchService(bus)
        self._bus = bus
        self._desk = CommandDesk(bus)
        self._commands: queue.Queue[Command | None] = queue.Queue(COMMANDS_WAITING + STOPS_WAITING)
        self._ui_priority = UiPriority()
        self._attendance = Attendance(bus)
        self._ended = threading.Event()
        self._coordinator: threading.Thread | None = None
        self._server: threading.Thread | None = None
        self._served: SessionServer | None = None
        self.exit_code = 1  # of the process; valid once the run is over

    def start(self, config: RunConfig, hooks: Hooks = NO_HOOKS, ranks: Ranks | None = None) -> None:
        """Return at once; everything else happens in the coordinator's thread. Called once. ranks: where there are
        several."""
        self._coordinator = spawn("coordinator", lambda: self._main(config, hooks, ranks), self._bus, self._crashed)

    def let_attach(self, live: LiveView | None = None) -> None:
        """Others of this user may attach while it trains. Called before `start`. live: see SessionServer."""
        from rl_tui.engine.remote.server import SessionServer

        server = self._served = SessionServer(self, self._past, live)
        self._server = spawn("attach", lambda: server.main(self.log), self._bus, lambda _: None)

    @property
    def why_not_attach(self) -> str:
        """Why others cannot attach to it; "" when they can, or once it trains."""
        return "" if self._served is None else self._served.problem

    def lose_screen(self) -> None:
        """No screen folds the view in this process any more: those that attach see it all the same."""
        if self._served is not None:
            self._served.folds = True

    def wait(self, timeout: float) -> bool:
        """Whether the run is over, waiting at most `timeout` seconds for it."""
        if not self._ended.wait(timeout):
            return False
        if self._coordinator is not None:  # torch aborts the process where a thread frees tensors while Python exits
            self._coordinator.join(FREEING_SECONDS)
        if self._server is not None and timeout > 0:  # those that have attached read how it has ended
            self._server.join(FREEING_SECONDS)
        return True

    @cached_property
    def live(self) -> LiveView:
        """The view of the run since this was first asked for."""
        return LiveView(self.subscribe())

    def send(self, message: Command | Hint) -> None:
        """Publish and queue a command; refused when the run is over or too many are waiting."""
        match message:
            case Attend() | TakeControl():
                self._ui_priority.is_attended = self._attendance.take(message)
            case YieldToScreen():
                self._ui_priority.request(message.seconds)
            case _ if self._desk.open(message):
                self._queue(message)

    def _past(self, started: RunStarted) -> Iterator[Envelope]:
        """What the log of a resumed run has of its earlier processes."""
        from rl_tui.engine.storage.event_log import read_events

        events = read_events(Path(started.path, EVENTS))
        return takewhile(lambda envelope: not self._bus.has_published(envelope), events)

    def _queue(self, command: Command) -> None:
        try:
            if not isinstance(command, Stop) and self._commands.qsize() >= COMMANDS_WAITING:
                raise queue.Full
            self._commands.put_nowait(command)
        except queue.Full:
            self._desk.finish(command.id, False, "too many commands are waiting")

    def log(self, text: str) -> None:
        """Publish a line about the run."""
        self._bus.log("info", "run", text)

    def subscribe(self) -> Subscription:
        """A mailbox with every event from now on."""
        return self._bus.subscribe()

    def _main(self, config: RunConfig, hooks: Hooks, ranks: Ranks | None) -> None:
        try:
            if ranks is not None:
                self._begin(config, ranks)
            with imports_that_stay():
                from rl_tui.engine.running.run import Run  # imports torch: 0.9 s in which the screen is already shown

            run = Run(config, self._bus, self._desk, self._commands, self._ui_priority, self.watching, hooks, ranks)
            try:
                self.exit_code = run.main()
            finally:
                self.failure = run.failure
        except RlTuiError as error:
            forget_locals(error)  # of libraries that report what is left when Python exits
            self.error, self.exit_code = error, error.exit_code
        finally:
            if ranks is not None:
                ranks.close()
        self._end()

    def _begin(self, config: RunConfig, ranks: Ranks) -> None:
        try:
            ranks.begin(config)
        except RlTuiError as error:
            self.failure = error
            self._bus.publish(RunStateChanged("failed", str(error), error.exit_code))
            raise

    def _crashed(self, error: BaseException) -> None:
        forget_locals(error)  # no tensors
        self.failure, self.exit_code = error, 1
        self._bus.publish(RunStateChanged("failed", name_and_text(error), 1))
        self._end()

    def _end(self) -> None:
        self._desk.close()
        self.watching.training_ended()
        self._ended.set()
