"""A run without an engine that is served on a socket, in a folder that this process has locked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rl_tui.engine.remote.client import RemoteSession, attach_to
from rl_tui.engine.remote.server import SessionServer
from rl_tui.engine.session.messages import Envelope, Event, RunStarted
from rl_tui.engine.session.view import RunView
from rl_tui.engine.storage.run_folder import RunFolder
from tests.deadline import DEADLINE_SECONDS
from tests.fakes import FakeSession


class Served:
    """session: of the run. path: of its folder. logged: why there is no attaching."""

    def __init__(self, results: Path, view: RunView, past: Callable[[RunStarted], Iterator[Envelope]]) -> None:
        self.folder = RunFolder(results, "served")
        self.folder.open(resume=False, force=False)
        self.path = self.folder.path
        self.session = FakeSession(view)
        self.logged: list[str] = []
        self.is_over = threading.Event()
        self.session.wait = self.is_over.wait  # type: ignore[method-assign]
        self.server = SessionServer(self.session, past, self.session.live)
        self.thread = threading.Thread(target=self.server.main, args=(self.logged.append,))

    def publish(self, *events: Event) -> None:
        """The run reports these."""
        for event in events:
            self.session.bus.publish(event)


@contextmanager
def served(
    results: Path,
    view: RunView | None = None,
    *,
    resumed: bool = False,
    past: Callable[[RunStarted], Iterator[Envelope]] = lambda _: iter(()),
) -> Iterator[Served]:
    """Its server runs until the end."""
    run = Served(results, view or RunView(), past)
    run.session.bus.epoch = 2 if resumed else 1
    run.thread.start()
    run.publish(RunStarted("served", str(run.path), 1, "cpu", resumed, {}))
    try:
        yield run
    finally:
        run.is_over.set()
        run.server.close()
        run.thread.join(DEADLINE_SECONDS)
        run.folder.close()
        assert not run.thread.is_alive()


@contextmanager
def attached(run: Path, name: str = "") -> Iterator[RemoteSession]:
    """A session that reads until the end."""
    session = attach_to(run, name=name)
    thread = threading.Thread(target=session.main)
    thread.start()
    session.whole.wait(DEADLINE_SECONDS)
    try:
        yield session
    finally:
        session.close()
        thread.join(DEADLINE_SECONDS)
        assert not thread.is_alive()
