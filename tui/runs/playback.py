"""A recorded run, played at any speed; one that is still running is followed."""

from __future__ import annotations

import math
import queue
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable

from rl_tui.engine.errors import RlTuiError
from rl_tui.engine.session.bus import EventBus, Subscription
from rl_tui.engine.session.command_desk import CommandDesk, Outcome
from rl_tui.engine.session.live_view import LiveView
from rl_tui.engine.session.messages import (
    Command,
    Envelope,
    Hint,
    LogEmitted,
    LogLevel,
    RunStateChanged,
    Stop,
)
from rl_tui.engine.session.watching import Unwatchable
from rl_tui.tui.drawing.text import duration, percent
from rl_tui.tui.runs.seeking import SILENT_SECONDS, OpenEvents, RecordingIndex, Seek, Snapshot

SPEEDS = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0, 300.0, 1000.0, math.inf)  # notches of `change_speed`
START_SPEED = 30.0  # of a run of unknown length
WATCHED_SECONDS = 60.0  # the length of the playback of any other run, at its first speed
BEAT_SECONDS = 0.05  # from one look at the time to the next
IDLE_BEAT_SECONDS = 0.2  # once the recording has ended
AHEAD_SECONDS = 0.02  # of each beat, spent on indexing the whole recording for seeking
SEEK_SECONDS = 0.2  # the same while a seek waits for it
LONGEST_BEAT_SECONDS = 1.0  # the rest of a longer one is dropped: the process was suspended
LOOK_SECONDS = 0.5  # from one look for new events to the next: as often as they are written
MAIL = 4000  # events that wait for the screen; it folds them within 20 ms
REFUSAL = "a replay: nothing to control"


def start_speed(seconds: float | None) -> float:
    """The speed at which a run of that length takes about WATCHED_SECONDS."""
    if seconds is None:
        return START_SPEED
    notches = SPEEDS[1:-1]
    return notches[min(bisect_left(notches, seconds / WATCHED_SECONDS), len(notches) - 1)]


class Playback:
    """A Session and a Player over the events of a run. Any thread may send, subscribe and change the speed. Either
    `main` runs in a thread of its own, or the caller calls `advance`; events are read there, a few ahead.

    Its clock is the time of the event that was published last. open_events: the events from a place on, None while
    there is no further one. process: the one that writes to the run now; "" once there is none, and the recording ends.
    start: where it begins, if not with the first event; it cannot seek then. is_held: nothing is published meanwhile.
    """

    def __init__(
        self,
        open_events: OpenEvents,
        speed: float = START_SPEED,
        process: Callable[[], str] = lambda: "",
        start: Snapshot | None = None,
        why_unwatchable: str = "a recording has no policies",
    ) -> None:
        self.watching = Unwatchable(why_unwatchable)
        self.bus = EventBus(self.clock)
        self._desk = CommandDesk(self.bus)
        self._index = RecordingIndex(open_events)
        self._reads_ahead = start is None
        start = start or Snapshot()
        self._seeks: queue.SimpleQueue[Seek] = queue.SimpleQueue()
        self._seek: Seek | None = None  # the requested one, until the recording is there
        self._events = open_events(start.place)
        self._process = process
        self._writer = ""  # of the run, once everything that it has written was published
        self._looked = LOOK_SECONDS  # real seconds since the last look for new events
        self._speed = speed
        self._speed_before = speed or START_SPEED  # before a pause
        self._next: Envelope | None = None
        self._timeline = start.timeline
        self._position = 0.0  # in the recording's time
        self._subscriptions: list[Subscription] = []
        self.live = LiveView(self.subscribe(), start.view)
        self._stopped = threading.Event()
        self._has_ended = False
        self.is_held = False

    def clock(self) -> float:
        """The recording's time."""
        return self._timeline.time or 0.0

    @property
    def has_ended(self) -> bool:
        """Whether the last event was published."""
        return self._has_ended

    def notes(self) -> tuple[str, ...]:
        """For the state line."""
        if self._writer:
            return (f"following {self._writer}",)
        if self._seek is not None:
            return ("replay: seeking",)
        if self._has_ended:
            return ("replay ended",)
        total = max(self._index.total, self._timeline.played)
        share = f" {percent(self._timeline.played, total)}%" if self._index.is_complete and total > 0 else ""
        return (f"replay{share} {speed_text(self._speed)}",)

    def subscribe(self) -> Subscription:
        """A mailbox with every event from now on; playing waits until there is room in it."""
        subscription = self.bus.subscribe(2 * MAIL)
        self._subscriptions.append(subscription)
        return subscription

    def send(self, message: Command | Hint) -> None:
        """A stop ends the replay; any other command is refused."""
        self._desk.answer(message, self._answer)

    def wait(self, timeout: float) -> bool:
        """Always true: there is nothing to wait for."""
        return True

    def change_speed(self, by: int) -> str:
        """Faster or slower by so many notches; returns the speed in words."""
        at = bisect_right(SPEEDS, self._speed) - 1 if by > 0 else bisect_left(SPEEDS, self._speed)
        self._speed = SPEEDS[max(0, min(len(SPEEDS) - 1, at + by))]
        return "the recording has ended" if self._has_ended else speed_text(self._speed)

    def pause(self) -> str:
        """Pause, or continue at the speed before; returns the speed in words."""
        if self._speed > 0:
            self._speed_before, self._speed = self._speed, 0.0
        else:
            self._speed = self._speed_before
        return "the recording has ended" if self._has_ended else speed_text(self._speed)

    def seek(self, seek: Seek) -> None:
        """Go there as soon as possible; several relative seeks add up."""
        self._seeks.put(seek)

    def advance(self, seconds: float) -> None:
        """Publish what is due after so many real seconds, while there is room in every mailbox."""
        if self.is_held or self._has_sought():
            return
        self._looked += seconds
        if self._next is None and not self._has_ended and (self._timeline.time is None or self._looked >= LOOK_SECONDS):
            self._begin()
        self._position = max(self._position, self.clock()) + (seconds * self._speed if self._speed < math.inf else 0.0)
        while self._next is not None and self._speed > 0 and not self._stopped.is_set():
            if any(subscription.num_waiting >= MAIL for subscription in self._subscriptions):
                self._position = self.clock()
                return
            if self._next.time > self._position and self._speed < math.inf and not self._skip_silence(self._next):
                return
            self._publish(self._next)
            self._next = self._read()

    def main(self) -> None:
        """Play the recording until it is stopped."""
        before = time.monotonic()
        while not self._stopped.wait(IDLE_BEAT_SECONDS if self._has_ended else BEAT_SECONDS):
            now = time.monotonic()
            self.advance(min(now - before, LONGEST_BEAT_SECONDS))
            before = now
            if self._reads_ahead and not self._index.is_complete:
                self._index.work(AHEAD_SECONDS)

    def crashed(self, error: BaseException) -> None:
        """The thread has ended with `error`, an internal error."""
        self._has_ended = True
        self.bus.publish(LogEmitted("error", "replay", f"{type(error).__name__}: {error}"))

    def stop(self) -> None:
        """Nothing is published from now on."""
        self._stopped.set()

    def _answer(self, command: Command) -> Outcome:
        if not isinstance(command, Stop):
            return False, REFUSAL
        self.stop()
        return True, "stopped"

    def _has_sought(self) -> bool:
        """Whether a seek was done or is pending."""
        while not self._seeks.empty():
            latest, before = self._seeks.get(), self._seek
            is_relative = before is not None and not latest.behavior and latest.share is None
            self._seek = before._replace(by=before.by + latest.by) if before is not None and is_relative else latest
        if self._seek is None:
            return False
        self._index.work(SEEK_SECONDS)
        if self._index.is_complete or self._seek == Seek(share=0.0):
            snapshot, self._events, self._next = self._index.snapshot(self._seek, self._timeline.played)
            self._timeline, self._position = snapshot.timeline, snapshot.timeline.time or 0.0
            self._has_ended, self._writer, self._looked = False, "", LOOK_SECONDS
            self._seek = None
            self.live.show(snapshot.view, drops_mail=True)
        return True

    def _begin(self) -> None:
        """Look for the first event, or for new ones."""
        self._next = self._read()
        if self._timeline.time is None and self._next is not None:
            self._position = self._next.time

    def _skip_silence(self, envelope: Envelope) -> bool:
        """Jump to the next event if it is far away; returns whether it was."""
        silence = 0.0 if self._timeline.time is None else envelope.time - self._timeline.time
        if silence <= SILENT_SECONDS:
            return False
        self._say("info", f"{duration(silence)} without events skipped")
        self._position = envelope.time
        return True

    def _publish(self, envelope: Envelope) -> None:
        self._timeline.advance(envelope)
        self.bus.deliver(envelope)

    def _read(self) -> Envelope | None:
        """The next event; None if there is none yet, at the end, and if it cannot be read."""
        self._looked = 0.0
        try:
            envelope = next(self._events, None)
            self._writer = self._process() if envelope is None else ""
            if envelope is None:
                envelope = next(self._events, None)  # what was written before its process ended
        except (OSError, ValueError, RlTuiError) as error:
            self._say("error", f"the rest of the recording cannot be read: {error}")
            self._has_ended = True
            return None
        if envelope is None and not self._writer:
            self._has_ended = True
            if not self._timeline.is_over:
                self.bus.publish(RunStateChanged("interrupted", "the recording ends here, before the run did"))
        return envelope

    def _say(self, level: LogLevel, message: str) -> None:
        self.bus.publish(LogEmitted(level, "replay", message))


def speed_text(speed: float) -> str:
    """The speed as the state line shows it."""
    if speed == 0:
        return "stands still"
    return "all at once" if speed == math.inf else f"{speed:g}x"
