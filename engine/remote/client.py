"""The session of a run that trains in another process of this machine."""

from __future__ import annotations

import contextlib
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
from rl_tui.engine.session.live_view import LiveView
from rl_tui.engine.session.messages import Command, Hint, RunStateChanged
from rl_tui.engine.session.snapshot import SnapshotReader
from rl_tui.engine.session.watching import Unwatchable
from rl_tui.engine.version import VERSION

ANSWER_SECONDS = 10.0  # of the run's process, which may be busy
READ_BYTES = 1 << 18
_FIRST, _CURVE, _LAST = (f'{{"v": {SCHEMA_VERSION}, "{key}":' for key in ("view", "curve", "complete"))
_NO_EVENT = _FIRST, _CURVE, _LAST
UNWATCHABLE = "only the screen in the process of the run can watch its policies; `rl-tui evaluate` plays a saved one"
LOST = "its process ended without a word"


class RemoteSession:
    """A Session. `main` runs in a thread of its own and reads what comes.

    greeting: of the run. A process that is gone has interrupted it: the view says so.
    """

    def __init__(self, run: Path, wants: Wanted = "view") -> None:
        """Raises AttachError."""
        self._connection = connect(run, ANSWER_SECONDS)
        self._reader = LineReader()
        self._messages: deque[str] = deque()
        self._sending = threading.Lock()
        self._closed = threading.Event()
        self._snapshot: SnapshotReader | None = None
        self._is_leaving = False
        self.bus = EventBus()
        self.live = LiveView(self.bus.subscribe())
        self.watching = Unwatchable(UNWATCHABLE)
        try:
            self.greeting: RunGreeting = read_run(self._next())
            if self.greeting.version != VERSION:
                other, pid = self.greeting.version, self.greeting.pid
                text = f"{run}: rl-tui {other} trains it, and this is {VERSION}: attach with that version"
                raise AttachError(
                    f"{text}, or send its process {pid} SIGUSR1, which saves, or SIGTERM, which also ends it"
                )
            self._write(greeting_of_client(wants))
            while wants == "view" and not self._take_view(self._next()):
                pass
        except BaseException:
            self._connection.close()
            raise

    def send(self, message: Command | Hint) -> None:
        """Send it to the run; nothing where its process has ended."""
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

    def main(self) -> None:
        """Read until the run has ended, its process is gone, or `close`."""
        self._connection.settimeout(None)
        try:
            while True:
                self._take(self._next())
        except (AttachError, ValueError) as error:
            if not self._is_leaving:
                self._end(str(error))
        finally:
            self._connection.close()
            self._closed.set()

    def crashed(self, error: BaseException) -> None:
        """The thread has ended with `error`, an internal error."""
        self._end(f"{type(error).__name__}: {error}")
        self._closed.set()

    def _end(self, problem: str) -> None:
        """Nothing more comes: after the end of the run, or because of that."""
        with self.live.reading() as view:
            is_over = view.is_over
        if not is_over:
            self.bus.publish(RunStateChanged("interrupted", problem))

    def _take(self, message: str) -> None:
        """An event, or what begins the view again for a reader that was behind. Raises AttachError, ValueError."""
        if message.startswith(_NO_EVENT):
            self._take_view(message)
        else:
            self.bus.deliver(decode(message))

    def _take_view(self, message: str) -> bool:
        """A part of a view; whether it is complete, and shown. Raises ValueError."""
        if message.startswith(_FIRST):
            self._snapshot = SnapshotReader(message)
        elif self._snapshot is None:
            raise ValueError(f"not the beginning of a view: {message[:80]!r}")
        elif message.startswith(_LAST):
            if not self._snapshot.is_complete:
                raise ValueError("a view is not complete")
            self.live.show(self._snapshot.view, drops_mail=True)
            self._snapshot = None
            return True
        else:
            self._snapshot.add(message)
        return False

    def _next(self) -> str:
        """The next message. Raises AttachError once there is none."""
        while not self._messages:
            try:
                data = self._connection.recv(READ_BYTES)
            except TimeoutError as error:
                raise AttachError(f"the process of the run has not answered for {ANSWER_SECONDS:g} s") from error
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
