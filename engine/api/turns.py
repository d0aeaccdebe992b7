"""Calls of several threads, one at a time."""

from __future__ import annotations

import threading
from types import TracebackType

from rl_tui.engine.api.plain_failures import make_plain
from rl_tui.engine.errors import RlTuiError


class Turn:
    """A thread's turn at an object, within which it may take another one, as hooks do.

    Another thread does not wait, but gets an RlTuiError. What else is raised within is plain text, as in
    `plain_failures`, which is a generator, and so cannot pass a StopIteration on.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._thread = ""

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            here = threading.current_thread().name
            raise RlTuiError(
                f"thread {here!r} must wait until {self._thread!r} has returned: a Learner serves one thread at a time"
            )
        self._thread = threading.current_thread().name

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
        if isinstance(error, RlTuiError):
            make_plain(error)
