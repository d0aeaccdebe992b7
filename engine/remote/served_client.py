"""One client of a run's socket: what it has sent, and what it has not read."""

from __future__ import annotations

import json
import socket
import time
from collections import deque
from collections.abc import Iterator

from rl_tui.engine.errors import AttachError
from rl_tui.engine.remote.greeting import Wanted
from rl_tui.engine.remote.lines import LineReader, lines_of
from rl_tui.engine.session.codec import SCHEMA_VERSION
from rl_tui.engine.session.messages import CommandAsked, CommandFinished, Envelope, RunStateChanged
from rl_tui.engine.session.snapshot import DRAWN_FIRST, Curve, Snapshot

QUEUE_BYTES = 8 << 20  # of events that a client has not read; one that is further behind gets a new snapshot
READ_BYTES = 1 << 16
OUTCOMES = (CommandAsked, CommandFinished, RunStateChanged)


class Client:
    """One connection. Used by the server's thread. wanted: None before its greeting. name: as a screen. attends: it
    shows the run to a user."""

    def __init__(self, connection: socket.socket, greeting: str) -> None:
        self.connection, self.number = connection, connection.fileno()
        self.wanted: Wanted | None = None
        self.name = ""
        self.attends = False
        self.came_at = time.monotonic()
        self._reader = LineReader()
        self._lines: deque[bytes] = deque(lines_of(greeting))  # of the message that is being sent
        self._snapshot: Iterator[str] = iter(())  # its messages that were not encoded yet
        self._is_whole = True  # the snapshot was sent
        self._events: deque[str] = deque()  # after it
        self._num_waiting = 0  # bytes of events
        self._position = (0, 0)  # of the snapshot: events up to there are in it

    @property
    def is_behind(self) -> bool:
        """Whether it has read too little for what comes to be kept for it."""
        return self._num_waiting > QUEUE_BYTES

    @property
    def has_output(self) -> bool:
        """Whether there is something to write."""
        return bool(self._lines or self._events) or not self._is_whole

    def receive(self) -> list[str]:
        """The messages that have come. Raises AttachError once it is gone, or sends what is none."""
        try:
            data = self.connection.recv(READ_BYTES)
        except BlockingIOError:
            return []
        except OSError as error:
            raise AttachError(str(error)) from error
        if not data:
            raise AttachError("it has left")
        return self._reader.feed(data)

    def put(self, message: str) -> None:
        """Send it after all that waits."""
        self._events.append(message)
        self._num_waiting += len(message)

    def begin(self, snapshot: Snapshot, position: tuple[int, int]) -> None:
        """It has nothing, or too little: it gets the whole view, and what has waited for it is dropped."""
        self._events.clear()
        self._num_waiting, self._position = 0, position
        self._snapshot, self._is_whole = whole(snapshot), False

    def is_news(self, envelope: Envelope) -> bool:
        """Whether it wants that event, and has not got it with the view."""
        if self.wanted == "view":
            return (envelope.epoch, envelope.number) > self._position
        return self.wanted == "outcomes" and isinstance(envelope.event, OUTCOMES)

    def write(self) -> None:
        """Write as much as it takes, at most one message: other clients have their turn. Raises AttachError once it is
        gone."""
        if not self._lines:
            self._lines.extend(lines_of(self._next()))
        try:
            while self._lines:
                num_sent = self.connection.send(self._lines[0])
                if num_sent < len(self._lines[0]):
                    self._lines[0] = self._lines[0][num_sent:]
                    return
                self._lines.popleft()
        except BlockingIOError:
            return
        except OSError as error:
            raise AttachError(str(error)) from error

    def _next(self) -> str:
        """The next message: all of the snapshot comes before the events."""
        if not self._is_whole:
            message = next(self._snapshot, None)
            if message is not None:
                return message
            self._is_whole = True
            return json.dumps({"v": SCHEMA_VERSION, "complete": True})
        message = self._events.popleft()
        self._num_waiting -= len(message)
        return message


def whole(snapshot: Snapshot) -> Iterator[str]:
    """The messages of a snapshot, each encoded when it is asked for; first the curves that are drawn first."""
    yield snapshot.first
    for curve in sorted(snapshot.curves, key=_rank):
        yield snapshot.line(curve)


def _rank(curve: Curve) -> int:
    return DRAWN_FIRST.index(curve[1]) if curve[1] in DRAWN_FIRST else len(DRAWN_FIRST)
