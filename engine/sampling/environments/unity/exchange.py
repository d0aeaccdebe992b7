"""The server that a player, or the Editor, calls. Messages are bytes here; what they mean is decided elsewhere."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

import grpc

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.sampling.environments.unity import ports

SERVICE = "communicator_objects.UnityToExternalProto"
MOST_REPLY_BYTES = 4 * 2**20  # that a client of gRPC receives by default, as Unity's does
_OPTIONS = [
    ("grpc.max_receive_message_length", -1),  # many images may be more than the 4 MiB that are usual
    ("grpc.max_send_message_length", -1),
    ("grpc.so_reuseport", 0),  # otherwise a second run could listen on the same port
]
_MOST_NOTES = 3  # about refused connections: programs may try without end
_THREADS = 3  # one for the client that is served, the others to refuse further ones
_STOP_SECONDS = 0.5  # for the last reply to be sent


class PortTaken(EnvironmentFailure):
    """Another process listens on the port since it was looked for."""


class Gone(Exception):
    """The client has closed its connection without a word."""


class _Request:
    """One call that waits for its reply."""

    def __init__(self, content: bytes | None) -> None:
        self.content = content  # None: the client has gone
        self._replies: SimpleQueue[bytes] = SimpleQueue()
        self.is_answered = False

    def answer(self, reply: bytes) -> None:
        """Let the call return."""
        self.is_answered = True
        self._replies.put(reply)

    def wait(self) -> bytes:
        """The reply, once there is one."""
        return self._replies.get()


class Exchange:
    """Listens on one port of this machine for one client. Used by one thread; gRPC's own call `_exchange`.

    admit: called for a connection while there is no client, with its port at the other end and its message; why it is
    refused, or "" if it is the client from now on. note: called with a line for the user about each of the first
    connections that are refused. Both are called by gRPC's threads.
    """

    def __init__(self, port: int, admit: Callable[[int, bytes], str], note: Callable[[str], None]) -> None:
        self.port = port
        self._admit, self._note = admit, note
        self._requests: SimpleQueue[_Request] = SimpleQueue()
        self._current: _Request | None = None  # received by `wait`, and not answered
        self._client: str | None = None  # the connection that is served
        self._noted: set[str] = set()  # connections that the user knows were refused
        self._admitting = threading.Lock()
        self._farewell: bytes | None = None  # what every call is answered with from now on
        self._threads = _DaemonThreads(_THREADS)
        self._server = grpc.server(self._threads, options=_OPTIONS)
        method = grpc.unary_unary_rpc_method_handler(self._exchange)
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {"Exchange": method}),))

    def open(self) -> None:
        """Listen from now on. Raises PortTaken."""
        try:
            self._server.add_insecure_port(f"{ports.HOST}:{self.port}")
        except RuntimeError as error:
            raise PortTaken(f"port {self.port} is taken") from error
        self._server.start()

    @property
    def peer_port(self) -> int | None:
        """The port of the client that is served, at its end."""
        return None if self._client is None else _port_of(self._client)

    def wait(self, seconds: float) -> bytes | None:
        """The client's next message; None if there is none in this time. Raises Gone."""
        assert self._current is None
        try:
            request = self._requests.get(timeout=max(0.0, seconds))
        except Empty:
            return None
        if request.content is None:
            raise Gone
        self._current = request
        return request.content

    def reply(self, content: bytes) -> None:
        """Answer the last message. Raises EnvironmentFailure if the reply is too large for Unity."""
        if len(content) >= MOST_REPLY_BYTES:
            raise EnvironmentFailure(
                f"a reply with actions and side channels must be smaller than {MOST_REPLY_BYTES:,} bytes, which is "
                f"what Unity receives, got {len(content):,}: have fewer agents in one player"
            )
        assert self._current is not None
        request, self._current = self._current, None
        request.answer(content)

    @property
    def owes_reply(self) -> bool:
        """Whether the client waits for an answer."""
        return self._current is not None

    def forget_client(self, farewell: bytes) -> None:
        """Answer what the client still asks with this, and serve another one from now on."""
        with self._admitting:
            self._client = None
        self._dismiss(farewell)

    def close(self, farewell: bytes) -> None:
        """Answer whatever is asked with this from now on, until `stop`."""
        self._farewell = farewell
        self._dismiss(farewell)

    def stop(self) -> None:
        """Listen no more."""
        self._server.stop(_STOP_SECONDS).wait(2 * _STOP_SECONDS)
        self._threads.end()

    def _dismiss(self, farewell: bytes) -> None:
        if self._current is not None:
            self.reply(farewell)
        with contextlib.suppress(Empty):
            while True:
                self._requests.get_nowait().answer(farewell)

    def _exchange(self, content: bytes, context: grpc.ServicerContext) -> bytes:
        """One call, from its message to its reply. Runs in one of gRPC's threads."""
        peer = context.peer()
        if peer != self._client and (reason := self._refusal(peer, content)):
            context.abort(grpc.StatusCode.PERMISSION_DENIED, reason)
        if self._farewell is not None:
            return self._farewell
        request = _Request(content)
        if not context.add_callback(lambda: self._ended(peer, request)):
            return b""  # the client has gone already
        self._requests.put(request)
        return request.wait()

    def _ended(self, peer: str, request: _Request) -> None:
        """The call is over: its reply was sent, or its client has closed the connection."""
        if not request.is_answered:
            request.answer(b"")
            if peer == self._client:
                self._requests.put(_Request(None))

    def _refusal(self, peer: str, content: bytes) -> str:
        """Why another connection is refused, which the user learns once; "" if it is served from now on.

        Nothing is kept of a refused one: the client may come from the same port after it has closed.
        """
        with self._admitting:
            if peer == self._client:
                return ""
            if self._client is not None:
                reason = "the port serves another client"
            else:
                reason = self._admit(_port_of(peer), content)
            if not reason:
                self._client = peer
                return ""
            self._note_refusal(peer, reason)
        return reason

    def _note_refusal(self, peer: str, reason: str) -> None:
        if peer in self._noted or len(self._noted) == _MOST_NOTES:
            return
        self._noted.add(peer)
        more = "; further ones will be refused without a line" if len(self._noted) == _MOST_NOTES else ""
        client = ports.client_in_words(_port_of(peer), self.port)
        self._note(f"a connection to port {self.port} by {client} was refused: {reason}{more}")


class _DaemonThreads(Executor):
    """Threads in which gRPC calls `Exchange`, and which end with the interpreter.

    It waits for those of a ThreadPoolExecutor when it exits, for ever if one waits for a reply.
    """

    def __init__(self, num_threads: int) -> None:
        self._num_threads = num_threads
        self._calls: SimpleQueue[tuple[Future[object], Callable[[], object]] | None] = SimpleQueue()
        for _ in range(num_threads):
            threading.Thread(target=self._run, name="unity server", daemon=True).start()

    def submit(
        self, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:  # Any: as its base has it
        """Call it in one of the threads. gRPC's functions catch what they call."""
        future: Future[object] = Future()
        self._calls.put((future, partial(function, *args, **kwargs)))
        return future

    def end(self) -> None:
        """Each thread ends after the call that it is in."""
        for _ in range(self._num_threads):
            self._calls.put(None)

    def _run(self) -> None:
        while (submitted := self._calls.get()) is not None:
            future, call = submitted
            future.set_result(call())


def _port_of(peer: str) -> int:
    """The port in gRPC's name of a connection, such as `ipv4:127.0.0.1:40312`."""
    return int(peer.rpartition(":")[2])
