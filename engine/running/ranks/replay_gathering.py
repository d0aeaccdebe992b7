"""How rank 0 comes by the replay buffers of all ranks, whichever thread saves a checkpoint."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from rl_tui.engine.errors import CheckpointError
from rl_tui.engine.learning.replay.redistribution import joined, require_divisible
from rl_tui.engine.running.threads import Control
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.specs import State

POLL_SECONDS = 0.1

# The parts of the others of a behavior, and which of these ranks are missing, in words.
Collect: TypeAlias = Callable[[str], tuple[list[State], str]]


@dataclass(frozen=True, slots=True)
class _Request:
    behavior: str
    answer: queue.Queue[tuple[list[State], str]] = field(default_factory=lambda: queue.Queue(1))


class ReplayGathering:
    """Any thread calls `gather`, and waits for that of the environment, which alone hears the other ranks."""

    def __init__(self, collect: Collect, control: Control, bus: EventBus) -> None:
        """control: of the environment's thread."""
        self._collect: Collect | None = collect
        self._control = control
        self._bus = bus
        self._requests: queue.SimpleQueue[_Request] = queue.SimpleQueue()
        self._thread: int | None = None
        self._has_failed = False

    def begin(self) -> None:
        """Called by the thread of the environment."""
        self._thread = threading.get_ident()

    @property
    def is_own_thread(self) -> bool:
        """Whether the caller is the thread of the environment."""
        return threading.get_ident() == self._thread

    def gather(self, behavior: str, own: State) -> State | None:
        """The replay buffer of all ranks, as of the newest update.

        Where others are lost, it is what the rest have. None once training is over: what was saved then has all.
        """
        try:
            require_divisible(own)
        except CheckpointError as error:
            self._bus.log("warning", behavior, f"the replay buffer is not saved: {error}")
            return None
        found = self._ask(behavior)
        if found is None and not self._has_failed:
            return None
        others, missing = found or ([], "all other ranks")
        if missing:
            text = f"the replay buffer is saved without the experience of {missing}, which is lost"
            self._bus.log("warning", behavior, text)
        return joined([own, *others])

    def _ask(self, behavior: str) -> tuple[list[State], str] | None:
        """None where the others cannot be reached any more."""
        if self.is_own_thread:
            return None if self._collect is None else self._collect(behavior)
        request = _Request(behavior)
        self._requests.put(request)
        while True:
            is_over = self._collect is None or self._control.is_lost  # read before looking, so that none comes between
            try:
                return request.answer.get(timeout=POLL_SECONDS)
            except queue.Empty:
                if is_over:
                    return None

    def serve(self) -> None:
        """Answer other threads. Called by that of the environment."""
        while self._collect is not None and not self._requests.empty():
            request = self._requests.get()
            request.answer.put(self._collect(request.behavior))

    def close(self, has_failed: bool) -> None:
        """The others leave. has_failed: training has ended early, and not all may be saved yet."""
        self._collect, self._has_failed = None, has_failed
