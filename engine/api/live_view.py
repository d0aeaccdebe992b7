"""The view of a run that trains in the background."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rl_tui.engine.session.bus import Session
from rl_tui.engine.session.messages import CommandFinished
from rl_tui.engine.session.view import RunView

FOLD_SECONDS = 0.5  # more often would slow learning down


class LiveView:
    """Folds a run's events as they come, and keeps the outcomes of its commands. Any thread; owns its subscription."""

    def __init__(self, session: Session):
        self._subscription = session.subscribe()
        self._lock = threading.Lock()
        self._view = RunView()
        self._outcomes: dict[str, CommandFinished] = {}

    def main(self, wait: Callable[[float], bool]) -> None:
        """Fold until the run is over. wait: so many seconds for that, and whether it is."""
        while not wait(FOLD_SECONDS):
            with self.reading():
                pass

    @contextmanager
    def reading(self) -> Iterator[RunView]:
        """The view as of now, which does not change meanwhile."""
        with self._lock:
            for envelope in self._subscription.drain():
                self._view.apply(envelope)
                if isinstance(envelope.event, CommandFinished):
                    self._outcomes[envelope.event.id] = envelope.event
            yield self._view

    def snapshot(self) -> RunView:
        """A copy of the view as of now."""
        with self.reading() as view:
            return copy.deepcopy(view)

    def outcome(self, command: str) -> CommandFinished | None:
        """Of the command of this id; None before it is finished."""
        with self.reading():
            return self._outcomes.get(command)
