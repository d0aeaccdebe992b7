"""Threads that an exit of the interpreter does not wait for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from queue import SimpleQueue
from typing import Any


class DaemonThreads(Executor):
    """Threads in which gRPC calls `Exchange`.

    The interpreter waits for the threads of a ThreadPoolExecutor when it exits, for ever if one waits for a reply.
    These end with it.
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
