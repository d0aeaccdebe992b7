"""The session of a run that trains in another process of this machine."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections import deque
from pathlib import Path

from rl_tui.engine.errors import AttachError
from rl_tui.engine.remote.greeting import RunGreeting, Wanted, greeting_of_client, read_run
from rl_tui.engine.remote.lines import LineReader, lines_of
from rl_tui.engine.remote.sockets import connect
from rl_tui.engine.session.bus import EventBus, Subscription
from rl_tui.engine.session.codec import SCHEMA_VERSION, decode, encode_command
from rl_tui.engine.session.command_desk import CommandDesk
from rl_tui.engine.session.live_view import LiveView
from rl_tui.engine.session.messages import Command, CommandFinished, Hint, RunStateChanged
from rl_tui.engine.session.snapshot import DRAWN_FIRST, SnapshotReader
from rl_tui.engine.session.watching import Unwatchable
from rl_tui.engine.version import VERSION

ANSWER_SECONDS = 10.0  # of the run's process, which may be busy
READ_BYTES = 1 << 18
_FIRST, _CURVE, _LAST = (f'{{"v": {SCHEMA_VERSION}, "{key}":' for key in ("view", "curve", "complete"))
_NO_EVENT = _FIRST, _CURVE, _LAST
UNWATCHABLE = "only the screen in the process of the run can watch its policies; `rl-tui evaluate` plays a saved one"
LOST = "its process ended without a word"
LEFT = "this program has left the run, which goes on"


class NoAnswerError(AttachError):
    """The process of the run does not answer in time."""


def attach_to(run: Path, wants: Wanted = "view", name: str = "", seconds: float = ANSWER_SECONDS) -> RemoteSession:
    """The session of the run in that folder. Raises AttachError where no process of this machine trains it."""
    try:
        return RemoteSession(connect(run), wants, name, seconds)
    except NoAnswerError as error:
        raise NoAnswerError(f"{run}: {error}") from error


class RemoteSession:
    """A Session. `main` runs in a thread of its own and reads what comes.

    name: of the screen, if there is one. greeting: of the run. whole: set once the view has every curve, or never will.
    A process that is gone has interrupted it: the view says so.
    """

    def __init__(
        self, connection: socket.socket, wants: Wanted = "view", name: str = "", seconds: float = ANSWER_SECONDS
    ) -> None:
        """seconds: for an answer of the run. Raises AttachError."""
        connection.settimeout(seconds)
        self._connection, self._seconds = connection, seconds
        self._reader = LineReader()
        self._messages: deque[str] = deque()
        self._sending = threading.Lock()
        self._closed, self.whole = threading.Event(), threading.Event()
        self._snapshot: SnapshotReader | None = None
        self._is_drawable = False
        self._is_leaving = self._is_read = False
        self._unanswered: set[str] | None = set()  # ids of commands; None once nothing more is answered
        self._answering = threading.Lock()
        self.lost: frozenset[str] = frozenset()  # ids of commands that the run has not answered, and never will
        self.bus = EventBus()
        self.live = LiveView(self.bus.subscribe())
        self.watching = Unwatchable(UNWATCHABLE)
        try:
            self.greeting: RunGreeting = read_run(self._next())
            if self.greeting.version != VERSION:
                path, other, pid = self.greeting.path, self.greeting.version, self.greeting.pid
                text = f"{path}: rl-tui {other} trains it, and this is {VERSION}: attach with that version"
                raise AttachError(
                    f"{text}, or send its process {pid} SIGUSR1, which saves, or SIGTERM, which also ends it"
                )
            self._write(greeting_of_client(wants, name))
            if wants == "view":
                self._await_picture()
        except BaseException:
            self._connection.close()
            raise

    def _await_picture(self) -> None:
        """What a first picture shows is in the view."""
        while not self._is_drawable:
            self._take_view(self._next())
        if self._snapshot is not None:
            self.live.show(self._snapshot.view)

    def send(self, message: Command | Hint) -> None:
        """Send it to the run. Where its process has ended, a command is refused."""
        with self._answering:
            is_lost = self._unanswered is None
            if self._unanswered is not None and not isinstance(message, Hint):
                self._unanswered.add(message.id)
        if is_lost and not isinstance(message, Hint):
            CommandDesk(self.bus).answer(message, lambda _: (False, LEFT if self._is_leaving else LOST))
        with contextlib.suppress(AttachError):
            self._write(encode_command(message))

    def subscribe(self) -> Subscription:
        """A mailbox with every event from now on."""
        return self.bus.subscribe()

    def wait(self, timeout: float) -> bool:
        """Whether nothing more will come, waiting at most `timeout` seconds for that."""
        return self._closed.wait(timeout)

    def close(self) -> None:
        """Leave; the run goes on."""
        self._is_leaving = True
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        if not self._is_read:
            self._connection.close()

    def main(self) -> None:
        """Read until the run has ended, its process is gone, or `close`."""
        self._is_read = True
        problem = LOST
        try:
            self._connection.settimeout(None)
            while True:
                self._take(self._next())
        except (AttachError, ValueError, OSError) as error:
            problem = str(error)
        finally:
            self._connection.close()
            self._end(problem)

    def crashed(self, error: BaseException) -> None:
        """The thread has ended with `error`, an internal error."""
        self._end(f"{type(error).__name__}: {error}")

    def read(self) -> None:
        """In the place of `main`: what has come until now."""
        while self._messages or select.select([self._connection], [], [], 0)[0]:
            self._take(self._next())

    def _end(self, problem: str) -> None:
        """Nothing more comes: the run has ended, or goes on without this session, or its process is gone."""
        with self._answering:
            unanswered, self._unanswered = self._unanswered or set(), None
            self.lost |= unanswered
        for command_id in unanswered:
            self.bus.publish(CommandFinished(command_id, False, LEFT if self._is_leaving else problem))
        with self.live.reading() as view:
            is_over = view.is_over
        if not is_over and not self._is_leaving:
            self.bus.publish(RunStateChanged("interrupted", problem))
        self._closed.set()
        self.whole.set()

    def _take(self, message: str) -> None:
        """An event, or what begins the view again for a reader that was behind. Raises AttachError, ValueError."""
        if message.startswith(_NO_EVENT):
            self._take_view(message)
        else:
            envelope = decode(message)
            if isinstance(envelope.event, CommandFinished) and self._unanswered is not None:
                self._unanswered.discard(envelope.event.id)
            self.bus.deliver(envelope)

    def _take_view(self, message: str) -> None:
        """A part of a view, which is shown once it is complete; the first one once its first picture is, and the other
        curves come into their places. Raises ValueError.
        """
        if message.startswith(_FIRST):
            self._snapshot = SnapshotReader(message)
        elif self._snapshot is None:
            raise ValueError(f"not the beginning of a view: {message[:80]!r}")
        elif message.startswith(_LAST):
            if not self._snapshot.is_complete:
                raise ValueError("a view is not complete")
            self.live.show(self._snapshot.view, drops_mail=True)
            self._snapshot, self._is_drawable = None, True
            self.whole.set()
        else:
            _, tag = self._snapshot.add(message)
            self._is_drawable |= tag not in DRAWN_FIRST

    def _next(self) -> str:
        """The next message. Raises AttachError once there is none."""
        while not self._messages:
            try:
                data = self._connection.recv(READ_BYTES)
            except TimeoutError as error:
                raise NoAnswerError(
                    f"the process of the run has not answered for {self._seconds:g} s; one that was suspended (ctrl+z)"
                    " goes on with fg in its terminal, or with kill -CONT and its process id"
                ) from error
            except OSError as error:
                raise AttachError(f"the connection is lost ({error.strerror})") from error
            if not data:
                raise AttachError(LOST)
            self._messages.extend(self._reader.feed(data))
        return self._messages.popleft()

    def _write(self, message: str) -> None:
        try:
            with self._sending:
                for line in lines_of(message):
                    self._connection.sendall(line)
        except OSError as error:
            raise AttachError(f"the connection is lost ({error.strerror})") from error
