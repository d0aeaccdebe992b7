"""The view of a run that goes on."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rl_tui.engine.session.bus import Subscription
from rl_tui.engine.session.messages import CommandFinished, Envelope
from rl_tui.engine.session.view import RunView

FOLD_SECONDS = 0.5  # more often would slow learning down


class LiveView:
    """A run's view, into which events are folded whenever it is read. Any thread; owns its mailbox.

    view: as of the last `fold`; what draws asks for it each time, since `show` puts another in its place.
    """

    def __init__(self, mail: Subscription, view: RunView | None = None) -> None:
        self.view = view or RunView()
        self.mail = mail
        self._changed = threading.Condition()
        self._outcomes: dict[str, CommandFinished] = {}

    def fold(self) -> list[Envelope]:
        """Bring the view up to date; what is new in it."""
        with self._changed:
            envelopes = self.mail.drain()
            for envelope in envelopes:
                self.view.apply(envelope)
                if isinstance(envelope.event, CommandFinished):
                    self._outcomes[envelope.event.id] = envelope.event
                    self._changed.notify_all()
            return envelopes

    def show(self, view: RunView, *, drops_mail: bool = False) -> None:
        """Continue from this view. drops_mail: events that were not folded yet are of another place."""
        with self._changed:
            if drops_mail:
                self.mail.drain()
            self.view = view

    @contextmanager
    def reading(self) -> Iterator[RunView]:
        """The view as of now, which does not change meanwhile."""
        self.fold()
        with self._changed:
            yield self.view

    def snapshot(self) -> RunView:
        """A copy of the view as of now."""
        with self.reading() as view:
            return copy.deepcopy(view)

    def outcome(self, command_id: str) -> CommandFinished | None:
        """Of that command; None before it is finished."""
        self.fold()
        return self._outcomes.get(command_id)

    def await_outcome(self, command_id: str, timeout: float | None = None) -> CommandFinished | None:
        """The same once it is folded in; None after so many seconds without."""
        self.fold()
        with self._changed:
            self._changed.wait_for(lambda: command_id in self._outcomes, timeout)
            return self._outcomes.get(command_id)

    def main(self, wait: Callable[[float], bool]) -> None:
        """Fold at once what the run answers, and the rest from time to time, until the run is over. wait: so many
        seconds for that, and whether it is."""
        woken = threading.Event()
        self.mail.on_news = woken.set
        while not wait(0.0):
            woken.wait(FOLD_SECONDS)
            woken.clear()
            self.fold()
        self.fold()
