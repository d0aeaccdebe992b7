"""Serves a run that trains in this process to screens and commands in other processes of its user."""

from __future__ import annotations

import contextlib
import math
import os
import selectors
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

from rl_tui.engine.errors import AttachError, RlTuiError
from rl_tui.engine.remote.greeting import greeting_of_run, read_client, refusal
from rl_tui.engine.remote.served_client import Client
from rl_tui.engine.remote.sockets import Listener, peer_of
from rl_tui.engine.session.codec import decode_command, encode
from rl_tui.engine.session.live_view import LiveView
from rl_tui.engine.session.messages import (
    Attend,
    Envelope,
    RunStarted,
    RunStateChanged,
    TakeControl,
)
from rl_tui.engine.session.reading import read_past
from rl_tui.engine.session.session import Session
from rl_tui.engine.session.snapshot import Snapshot
from rl_tui.engine.session.states import ENDS
from rl_tui.engine.session.view import RunView

FOLD_SECONDS = 0.5  # between looks for events; more often would slow learning down
BEAT_SECONDS = 0.1  # the same with clients
MOST_CLIENTS = 32
TOO_MANY = f"{MOST_CLIENTS} screens and programs are attached to this run, which is the most that it serves"
MOST_NAME = 80  # characters
GREETING_SECONDS = 10.0  # in which a client says what it wants
LAST_SECONDS = 2.0  # in which clients read how the run has ended
READ_BYTES = 1 << 16


class SessionServer:
    """`main` runs in the thread `attach`. Owns the socket of the run, and what its clients have not read.

    live: the view that this thread is to fold, from before the first event on, with what `past` has of the run from
    before this process; None where a screen folds the session's. Training never waits for a client.
    """

    def __init__(
        self, session: Session, past: Callable[[RunStarted], Iterator[Envelope]], live: LiveView | None = None
    ) -> None:
        self._session, self._past = session, past
        self._live = live or session.live
        self.folds = live is not None  # set it once no screen folds the session's view any more
        self._mail = session.subscribe()
        self._clients: dict[int, Client] = {}  # by descriptor
        self._selector = selectors.DefaultSelector()
        self._woken, self._wake = socket.socketpair()
        self._woken.setblocking(False)
        self._wake.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._started: RunStarted | None = None
        self._listener: Listener | None = None
        self.problem = ""  # why there is no socket
        self._is_closed = False

    @property
    def num_clients(self) -> int:
        """How many are connected."""
        return len(self._clients)

    @property
    def has_output(self) -> bool:
        """Whether any client has something left to read."""
        return any(client.has_output for client in self._clients.values())

    def close(self) -> None:
        """End soon. Any thread."""
        self._is_closed = True
        self._notify()

    def main(self, log: Callable[[str], None]) -> None:
        """Serve from the start of the run until its end. log: called with a warning for the user."""
        self._mail.on_news = self._notify
        try:
            self._started = self._await_start()
            if self._started is None:
                return
            try:
                self._listen()
            except AttachError as error:
                self.problem = str(error)
                log(f"no attaching to this run: {error}")
            if self.folds and self._started.resumed and (problem := self._read_past()):
                log(problem)
            self._serve()
        finally:
            self.release()

    def release(self) -> None:
        """Every connection is closed, and nothing is served any more."""
        self._mail.on_news = None
        self._mail.close()
        for client in list(self._clients.values()):
            self._drop(client)
        self._selector.close()
        self._woken.close()
        self._wake.close()
        if self._listener is not None:
            self._listener.close()

    def _listen(self) -> None:
        """The socket is at its place. Raises AttachError."""
        if self._listener is not None:
            self._selector.unregister(self._listener.socket)
            self._listener.close()
            self._listener = None
        assert self._started is not None
        run = Path(self._started.path)
        self._listener = Listener(run)
        self._selector.register(self._listener.socket, selectors.EVENT_READ)

    def _notify(self) -> None:
        """Any thread: there is something to do."""
        with contextlib.suppress(OSError):
            self._wake.send(b"\0")

    def _await_start(self) -> RunStarted | None:
        """How the run has started; None where it did not."""
        while not self._is_closed:
            for envelope in self._mail.drain(FOLD_SECONDS):
                match envelope.event:
                    case RunStarted() as started:
                        return started
                    case RunStateChanged(state=state) if state in ENDS:
                        return None
            if self._session.wait(0.0):
                return None
        return None

    def _read_past(self) -> str:
        """The view has what the run has reported before; why not all of it, "" if it has."""
        assert self._started is not None
        view, problem = RunView(), ""
        try:
            read_past(view, takewhile(lambda _: not self._is_closed, self._past(self._started)))
        except (RlTuiError, OSError) as error:
            problem = f"not all earlier events of the run could be read: {error}"
        self._live.show(view)
        return problem

    def _serve(self) -> None:
        """Until the run is over, and clients have read how it has ended."""
        ends_at = math.inf
        while time.monotonic() < ends_at:
            is_over = self.step(BEAT_SECONDS if self._clients else FOLD_SECONDS)
            if self._listener is None or not self._listener.is_at_its_place():
                with contextlib.suppress(AttachError):  # it trains on
                    self._listen()
                    self.problem = ""
            if is_over or self._is_closed or self._session.wait(0.0):
                ends_at = min(ends_at, time.monotonic() + LAST_SECONDS)
                if not self.has_output:
                    return

    def step(self, seconds: float) -> bool:
        """Read and write what can be, after waiting so many seconds at most; whether the run is over."""
        for key, events in self._selector.select(seconds):
            if key.fileobj is self._woken:
                with contextlib.suppress(BlockingIOError):
                    self._woken.recv(READ_BYTES)
            elif isinstance(key.data, Client):
                self._attend_to(key.data, events)
            elif self._listener is not None:
                self._accept(self._listener.socket)
        is_over = self._pass_on()
        if self.folds:
            self._live.fold()
        for client in list(self._clients.values()):
            self._check(client)
        return is_over

    def _accept(self, listener: socket.socket) -> None:
        assert self._started is not None
        with contextlib.suppress(OSError):  # it has left already, or there are no descriptors
            connection, _ = listener.accept()
            is_own = peer_of(connection) in (os.getuid(), None)
            if not is_own or len(self._clients) >= MOST_CLIENTS:
                with connection:
                    if is_own:
                        connection.send(f"{refusal(TOO_MANY)}\n".encode())
                return
            self.admit(connection, greeting_of_run(self._started.run_id, self._started.path))

    def admit(self, connection: socket.socket, greeting: str) -> None:
        """Serve the client at the other end, which has nothing yet."""
        connection.setblocking(False)
        client = self._clients[connection.fileno()] = Client(connection, greeting)
        self._selector.register(connection, selectors.EVENT_READ, client)

    def _attend_to(self, client: Client, events: int) -> None:
        """Take what it has sent, and write what it takes."""
        try:
            if events & selectors.EVENT_READ:
                for message in client.receive():
                    self._take(client, message)
            if events & selectors.EVENT_WRITE and client.has_output:
                client.write()
        except (AttachError, ValueError):
            self._drop(client)

    def _take(self, client: Client, message: str) -> None:
        """Raises AttachError, ValueError on what is no greeting or no command."""
        if client.wanted is None:
            greeting = read_client(message)
            client.wanted = greeting.wants
            client.name = (greeting.name or f"process {greeting.pid}")[:MOST_NAME]
            if client.wanted == "view":
                self._begin(client)
            return
        sent = decode_command(message)
        if isinstance(sent, Attend):
            client.attends = sent.is_attended
        if isinstance(sent, Attend | TakeControl):
            sent = replace(sent, screen=client.name)
        self._session.send(sent)

    def _begin(self, client: Client) -> None:
        with self._live.reading() as view:
            client.begin(Snapshot(view), view.position)

    def _pass_on(self) -> bool:
        """Give clients what has happened; whether the run is over."""
        is_over = False
        for envelope in self._mail.drain():
            is_over |= isinstance(envelope.event, RunStateChanged) and envelope.event.state in ENDS
            line = ""
            for client in self._clients.values():
                if client.is_news(envelope):
                    line = line or encode(envelope)
                    client.put(line)
        return is_over

    def _check(self, client: Client) -> None:
        """Drop one that says nothing, begin again with one that is behind, and look whether the others can be written
        to."""
        if client.wanted is None and time.monotonic() - client.came_at > GREETING_SECONDS:
            self._drop(client)
            return
        if client.is_behind:
            self._begin(client)
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if client.has_output else 0)
        if self._selector.get_key(client.connection).events != events:
            self._selector.modify(client.connection, events, client)

    def _drop(self, client: Client) -> None:
        """It has left, or has sent what is none of this protocol."""
        if client.attends:
            self._session.send(Attend(False, client.name))
        del self._clients[client.number]
        self._selector.unregister(client.connection)
        client.connection.close()
