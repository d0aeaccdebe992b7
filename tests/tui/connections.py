"""How a screen of a test is connected to its run: by shared objects, or by a socket as one in another process."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

from rl_tui.engine.remote.client import RemoteSession
from rl_tui.engine.remote.greeting import greeting_of_run
from rl_tui.engine.remote.server import SessionServer
from rl_tui.engine.session.bus import EventBus, Subscription
from rl_tui.engine.session.live_view import LiveView
from rl_tui.engine.session.messages import Command, Hint
from rl_tui.engine.session.snapshot import Snapshot, SnapshotReader
from rl_tui.engine.session.view import RunView
from rl_tui.engine.session.watching import Watching
from tests.deadline import DEADLINE_SECONDS
from tests.fakes import FakeSession


class Connection:
    """That of every screen that is opened now. is_by_socket: nothing is shared."""

    is_by_socket = False


def sent(view: RunView) -> RunView:
    """The view after it has travelled, its last curve first."""
    snapshot = Snapshot(view)
    reader = SnapshotReader(snapshot.first)
    for curve in reversed(snapshot.curves):
        assert not reader.is_complete
        reader.add(snapshot.line(curve))
    assert reader.is_complete
    return reader.view


class PumpedBus(EventBus):
    """What is published has reached the other end at once."""

    pump: Callable[[], None] = staticmethod(lambda: None)

    def publish(self, event: object) -> None:
        """As a run does."""
        super().publish(event)  # type: ignore[arg-type]  # as EventBus has it
        self.pump()


class SessionOverSocket(FakeSession):
    """The run at one end of a pair of sockets, with `commands`, `hints` and `bus`; a screen has the other end, with
    `live`, and its `send` arrives here. Both ends have done all that they can when a call returns.
    """

    def __init__(self, view: RunView | None = None, *, answers: bool = True, watching: Watching | None = None) -> None:
        super().__init__(view, answers=answers, watching=watching)
        self._server = SessionServer(_RunSide(self, self.live), lambda _: iter(()), self.live)
        ours, theirs = socket.socketpair()
        self._server.admit(theirs, greeting_of_run("fake", "results/fake"))
        is_greeted = threading.Event()

        def serve() -> None:
            while not is_greeted.is_set():
                self._server.step(0.01)

        server = threading.Thread(target=serve)
        server.start()
        try:
            self._remote = RemoteSession(ours)
        finally:
            is_greeted.set()
            server.join(DEADLINE_SECONDS)
        self.live = self._remote.live
        self._is_pumping = False
        assert isinstance(self.bus, PumpedBus)
        self.bus.pump = self._pump
        while not self._remote.whole.is_set():
            self._pump()

    def make_bus(self) -> EventBus:
        """One whose events travel at once."""
        return PumpedBus()

    def send(self, message: Command | Hint) -> None:
        """What the screen sends has reached the run."""
        self._remote.send(message)
        self._pump()

    def take(self, message: Command | Hint) -> None:
        """It reaches the run."""
        super().send(message)

    def subscribe(self) -> Subscription:
        """A mailbox on the screen's side; before there is one, on the run's."""
        return self._remote.subscribe() if hasattr(self, "_remote") else super().subscribe()

    def close(self) -> None:
        """Both ends are gone."""
        self.bus.pump = lambda: None  # type: ignore[attr-defined]  # see make_bus
        self._remote.close()
        self._server.release()
        self._remote.main()

    def _pump(self) -> None:
        """Until nothing is under way in either direction."""
        if self._is_pumping:
            return
        self._is_pumping = True
        try:
            idle = 0
            while idle < 2:  # what one end has answered may be answered again
                before = self._remote.live.mail.num_waiting, len(self.commands), len(self.hints)
                self._server.step(0.0)
                self._remote.read()
                after = self._remote.live.mail.num_waiting, len(self.commands), len(self.hints)
                idle = idle + 1 if before == after and not self._server.has_output else 0
        finally:
            self._is_pumping = False


class _RunSide:
    """The run as its server has it."""

    def __init__(self, session: SessionOverSocket, live: LiveView) -> None:
        self._session, self.live, self.watching = session, live, session.watching

    def send(self, message: Command | Hint) -> None:
        self._session.take(message)

    def subscribe(self) -> Subscription:
        return self._session.bus.subscribe()

    def wait(self, timeout: float) -> bool:
        return False
