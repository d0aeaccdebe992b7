"""Whether a learner may be called now, and what follows when a call ends badly."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from types import TracebackType

from rl_tui.engine.api.turns import Turn
from rl_tui.engine.api.workbench import Workbench
from rl_tui.engine.errors import HookError, RlTuiError
from rl_tui.engine.running.behavior import Behavior


class Usage:
    """Shared by a Learner and its behaviors. As a context manager it surrounds what trains, within a `turn`.

    turn: of the thread that calls. is_closed: whether the learner was closed. is_busy: whether it trains, from which
    only hooks call.
    """

    def __init__(self, bench: Workbench):
        self.turn = Turn()
        self.is_closed = False
        self.pid = os.getpid()
        self._bench = bench
        self.is_busy = False
        self._is_interrupted = False
        self._left_at = time.monotonic()

    def require_usable(self, behaviors: Iterable[Behavior]) -> None:
        """Raise RlTuiError where these cannot be used (any more)."""
        if self.pid != os.getpid():
            raise RlTuiError("a Learner belongs to the process that made it, and cannot be used in a fork of that")
        if self.is_closed:
            path = self._bench.runtime.folder.path
            raise RlTuiError(f"{path}: this Learner is closed; a new one continues from its last checkpoint")
        for behavior in behaviors:
            if (failure := behavior.learner.failure) is not None:
                text = f"training has failed, and a new Learner continues from the last checkpoint: {failure}"
                raise RlTuiError(text) from failure

    def close(self) -> None:
        """See Learner.close."""
        if self.is_closed or self.pid != os.getpid():
            return
        with self.turn:
            if self.is_busy:
                raise RlTuiError("a hook cannot close its learner: an exception ends training")
            self.is_closed = True
            self._bench.close()

    def __enter__(self) -> None:
        """Training begins. After an interruption, environments begin new episodes."""
        if self.is_busy:
            raise RlTuiError("a hook cannot train: it is called while the learner learns")
        self._bench.add_waiting(time.monotonic() - self._left_at)
        if self._is_interrupted:
            self._bench.restart()
            self._is_interrupted = False
        self.is_busy = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Training has ended. Raises what a hook raised, with everything saved."""
        try:
            if isinstance(error, HookError):
                raise self._bench.failed_hook(error) from None
            self._is_interrupted |= error is not None and not isinstance(error, RlTuiError)
        finally:
            self._left_at = time.monotonic()
            self.is_busy = False
