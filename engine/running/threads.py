"""Threads: how they start, park, stop and fail. The only file that creates one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from typing import Generic, TypeVar

from rl_tui.engine.process.tracebacks import name_and_text, whole_traceback
from rl_tui.engine.process.vital_signs import SIGNS
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import StopMode, WorkerFailed

T = TypeVar("T")

BEAT_SECONDS = 0.25
PARKED_SECONDS = 0.5  # from one look of a parked worker at what does not wake it to the next
LATE_SECONDS = 0.05  # from one look whether a call is late to the next


class UiPriority:
    """Makes workers wait for a moment, so that the screen has the interpreter to itself. Any thread."""

    def __init__(self) -> None:
        self.is_attended = False  # a user watches the run, and can decide how it continues
        self._until = 0.0

    def request(self, seconds: float) -> None:
        """Workers that reach a safe point within that time wait there until it has passed."""
        self._until = time.monotonic() + seconds

    def wait_for_ui(self) -> None:
        """Wait as long as the screen has priority."""
        left = self._until - time.monotonic()
        if left > 0:
            time.sleep(left)


class Control:
    """Pause, stop and end of a group of workers. The workers call `safe_point`, other threads the rest.

    is_lost: a call into the environment never returned, and its thread must change nothing more. has_ended: no more
    experience will come. on_parked: called when the last of the workers has parked, by that one.
    """

    def __init__(self, ui_priority: UiPriority) -> None:
        self.is_lost = False
        self.has_ended = False
        self.on_parked: Callable[[], None] = lambda: None
        self._ui_priority = ui_priority
        self._changed = threading.Condition()
        self._is_paused = False
        self._num_asked = 0
        self._stop: StopMode | None = None
        self._num_workers = 0
        self._num_parked = 0
        self._parked_at: float | None = None
        self._parked_seconds = 0.0

    @property
    def stop_mode(self) -> StopMode | None:
        """How to stop; None until a stop is requested."""
        return self._stop

    @property
    def is_attended(self) -> bool:
        """Whether a user watches who can decide how the run continues."""
        return self._ui_priority.is_attended

    @property
    def is_paused(self) -> bool:
        """Whether workers are to park."""
        return self._is_paused

    @property
    def is_parked(self) -> bool:
        """Whether there are workers and every one of them has parked."""
        with self._changed:
            return self._is_paused and self._stop is None and 0 < self._num_workers <= self._num_parked

    def running_seconds(self) -> float:
        """The monotonic clock less the time for which every worker was parked. Called by a worker."""
        return time.monotonic() - self._parked_seconds

    def pause(self) -> None:
        """Let workers park at their next safe point."""
        with self._changed:
            self._is_paused = True

    def resume(self) -> None:
        """Let parked workers continue."""
        with self._changed:
            self._is_paused = False
            self._changed.notify_all()

    def stop(self, mode: StopMode) -> None:
        """Let workers leave at their next safe point. "now" overrides "checkpoint", never the reverse."""
        with self._changed:
            self._stop = "now" if "now" in (mode, self._stop) else mode
            self._changed.notify_all()

    def ask(self) -> None:
        """Let parked workers serve now."""
        with self._changed:
            self._num_asked += 1
            self._changed.notify_all()

    def join(self) -> None:
        """Count one more worker. Called before it starts, so that nothing counts as parked until it has parked."""
        with self._changed:
            self._num_workers += 1

    def leave(self) -> None:
        """Count one worker less."""
        with self._changed:
            self._num_workers -= 1
        self.on_parked()  # the others may have

    def safe_point(self, serve: Callable[[], None]) -> bool:
        """Wait for the screen, serve commands, park while paused (still serving); whether to continue."""
        self._ui_priority.wait_for_ui()
        asked = self._num_asked
        serve()
        if not self._is_paused:
            return self._stop is None
        with self._changed:
            self._num_parked += 1
            is_last = self._num_parked >= self._num_workers
            if is_last:
                self._parked_at = time.monotonic()
        if is_last:
            self.on_parked()
        while self._stays_parked(asked):
            asked = self._num_asked
            serve()
        return self._stop is None

    def may_continue(self) -> bool:
        """Wait for the screen; whether to continue, where a worker can neither serve nor park."""
        self._ui_priority.wait_for_ui()
        return self._stop is None

    def _stays_parked(self, asked: int) -> bool:
        """Wait a moment for a resume or a stop, once which comes the worker no longer counts as parked, or for more to
        serve than there was after so many calls of `ask`."""
        with self._changed:
            self._changed.wait_for(lambda: self._leaves_park() or self._num_asked > asked, PARKED_SECONDS)
            if not self._leaves_park():
                return True
            self._num_parked -= 1
            if self._parked_at is not None:
                self._parked_seconds += time.monotonic() - self._parked_at
                self._parked_at = None
            return False

    def _leaves_park(self) -> bool:
        return not self._is_paused or self._stop is not None


class Mailbox(Generic[T]):
    """One slot, in which a newer item replaces an older one that was not read."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._content: T | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read."""
        return self._content is None

    def put(self, content: T) -> None:
        """Replace what is there."""
        with self._changed:
            self._content = content
            self._changed.notify()

    def pop(self, timeout: float = 0.0) -> T | None:
        """Remove and return what is there, waiting at most `timeout` seconds for it."""
        if self._content is None and timeout <= 0:
            return None
        with self._changed:
            if self._content is None:
                self._changed.wait(timeout)
            content, self._content = self._content, None
            return content


def has_returned(name: str, call: Callable[[], None], is_late: Callable[[], bool]) -> bool:
    """Whether the call, made in a thread of that name, returns before it is late. Raises what it raises.

    A call that is late continues: only the end of the process ends it.
    """
    raised: list[BaseException] = []

    def noted() -> None:
        try:
            call()
        except BaseException as error:  # raised again in the thread that waits
            raised.append(error)

    thread = threading.Thread(target=copy_context().run, args=(noted,), name=name, daemon=True)
    thread.start()
    while thread.is_alive() and not is_late():
        thread.join(LATE_SECONDS)
    if raised:
        raise raised[0]
    return not thread.is_alive()


def keep_beating() -> None:
    """From now on "main" beats as long as the interpreter runs, for a main thread that is in calls that last."""

    def beat() -> None:
        while True:
            SIGNS.beat("main")
            time.sleep(BEAT_SECONDS)

    threading.Thread(target=beat, name="beat", daemon=True).start()


def spawn(
    name: str, main: Callable[[], None], bus: EventBus, on_failure: Callable[[BaseException], None]
) -> threading.Thread:
    """Start `main` in a thread of that name. An error that escapes it is published as WorkerFailed and passed to
    `on_failure`."""

    def supervised() -> None:
        try:
            main()
        except BaseException as error:  # a thread that dies silently leaves a run that never ends
            try:
                bus.publish(WorkerFailed(name, name_and_text(error), whole_traceback(error)))
            finally:
                on_failure(error)

    thread = threading.Thread(target=copy_context().run, args=(supervised,), name=name, daemon=True)
    thread.start()
    return thread
