"""A connection between rank 0 and another rank, on which messages arrive in their order."""

from __future__ import annotations

import os
import select
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import TypeVar

from rl_tui.engine.errors import SyncError
from rl_tui.engine.running.ranks.messages import Failure

M = TypeVar("M")


class Link:
    """Used by one thread at a time. Every method raises SyncError once the other rank is lost: it has closed its end,
    or nothing was heard of it for `deadline` seconds of the clock."""

    def __init__(self, connection: Connection, name: str, deadline: float, clock: Callable[[], float]):
        """name: of the other rank, for messages."""
        self.connection = connection
        self.name = name
        self._deadline = deadline
        self._clock = clock
        self.heard_at = clock()

    def send(self, message: object) -> None:
        """Send a message. Waits where the other rank does not read."""
        try:
            self.connection.send(message)
        except OSError as error:
            raise self._lost(error) from error

    def receive(self, *, may_be_silent: bool = False) -> object | None:
        """The next message, None where none has arrived."""
        try:
            if self.connection.poll():
                message: object = self.connection.recv()
                self.note_heard()
                return message
        except (EOFError, OSError) as error:
            raise self._lost(error) from error
        if not may_be_silent and self.is_silent:
            raise self.silent()
        return None

    def wait_for(self, kind: type[M], seconds: float) -> M:
        """The next message, which is of that class, and comes within that time."""
        until = self._clock() + seconds
        while (message := self.receive(may_be_silent=self._clock() < until)) is None:
            self.wait(0.1)
        if isinstance(message, Failure):
            raise SyncError(f"{self.name} has failed: {message.reason}", message.exit_code)
        if not isinstance(message, kind):
            raise SyncError(f"{self.name} is out of step: it sent {type(message).__name__} instead of {kind.__name__}")
        return message

    def wait(self, seconds: float) -> None:
        """Return when there is something to receive, or after that time."""
        try:
            self.connection.poll(seconds)
        except OSError as error:
            raise self._lost(error) from error

    @property
    def is_silent(self) -> bool:
        """Whether nothing was heard of the other rank for so long that it is lost."""
        return self._clock() - self.heard_at > self._deadline

    def silent(self) -> SyncError:
        """It is lost, since it says nothing."""
        seconds = self._clock() - self.heard_at
        return SyncError(f"{self.name} was lost: nothing was heard of it for {seconds:.0f} s")

    def note_heard(self) -> None:
        """It is known by other means that the other rank is well."""
        self.heard_at = self._clock()

    @property
    def is_closed(self) -> bool:
        """Whether an end is closed, also where there is more to read. Any thread."""
        poll = select.poll()
        try:
            poll.register(self.connection, select.POLLRDHUP if sys.platform == "linux" else 0)
        except OSError:  # this end
            return True
        return bool(poll.poll(0))

    def close(self) -> None:
        """The other rank will find it closed."""
        self.connection.close()

    def end_sending(self) -> None:
        """The other rank will find that nothing more comes, once it has received all. Raises nothing."""
        with suppress(OSError), socket.socket(fileno=os.dup(self.connection.fileno())) as own:
            own.shutdown(socket.SHUT_WR)

    def close_after_other(self, seconds: float) -> None:
        """Close it once the other rank has: what it was sent last is lost where this end has not read all. Does not
        wait longer than that, and raises nothing."""
        until = time.monotonic() + seconds
        with suppress(EOFError, OSError):
            while self.connection.poll(max(0.0, until - time.monotonic())):
                self.connection.recv()
        self.close()

    def _lost(self, error: Exception) -> SyncError:
        is_late = isinstance(error, BlockingIOError)
        return SyncError(f"{self.name} was lost: {'it does not read' if is_late else 'its process has ended'}")


def limit_waiting(connection: Connection, seconds: float) -> None:
    """No call waits longer than that for the middle of a message, or for room to send one."""
    limit = struct.pack("ll", int(seconds), int(seconds % 1 * 1e6))
    with socket.socket(fileno=connection.fileno()) as own:
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            own.setsockopt(socket.SOL_SOCKET, option, limit)
        own.detach()
