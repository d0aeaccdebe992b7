"""A recorded run, told again at another pace; one that still goes on is followed."""

from __future__ import annotations

import math
import queue
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable

from rl_tui.engine.errors import RlTuiError
from rl_tui.engine.session.bus import EventBus, Subscription
from rl_tui.engine.session.log_position import LogPosition
from rl_tui.engine.session.messages import (
    Command,
    CommandAsked,
    CommandFinished,
    Envelope,
    LogEmitted,
    LogLevel,
    RunStateChanged,
    Stop,
)
from rl_tui.engine.session.view import RunView
from rl_tui.tui.drawing.text import duration, percent
from rl_tui.tui.runs.seeking import SILENT_SECONDS, Course, Open, Rewinder, Seek

SPEEDS = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0, 300.0, 1000.0, math.inf)  # notches of `change_speed`
START_SPEED = 30.0  # of a run whose length nobody knows
WATCHED_SECONDS = 60.0  # what a run whose length is known takes at the speed it starts with
BEAT_SECONDS = 0.05  # from one look at the time to the next
IDLE_BEAT_SECONDS = 0.2  # once the recording has ended
AHEAD_SECONDS = 0.02  # of each beat, spent on reading the whole recording for those who want to go elsewhere in it
SEEK_SECONDS = 0.2  # the same while somebody waits for it
LONGEST_BEAT_SECONDS = 1.0  # the rest of a longer one is lost: the process was suspended
LOOK_SECONDS = 0.5  # from one look for further events to the next: as often as they are written
MAIL = 4000  # events that wait for the screen; it folds them within 20 ms
REFUSAL = "a replay: nothing to control"


def start_speed(seconds: float | None) -> float:
    """The notch at which a run of that length takes about WATCHED_SECONDS."""
    if seconds is None:
        return START_SPEED
    notches = SPEEDS[1:-1]
    return notches[min(bisect_left(notches, seconds / WATCHED_SECONDS), len(notches) - 1)]


class Replay:
    """A Session and a Player over the events of a run. Any thread may send, subscribe and change the speed. Either
    `main` is the main of a thread of its own, or somebody calls `advance`; events are read in there, a few ahead.

    Its clock is that of the recording: the time of the event told last. open_events: the events from a place on, None
    where there is no further one yet. process: who writes to the run now, "" once nobody does: it ends there.
    """

    def __init__(
        self,
        open_events: Open,
        speed: float = START_SPEED,
        process: Callable[[], str] = lambda: "",
    ) -> None:
        self.bus = EventBus(self.clock)
        self._rewinder = Rewinder(open_events)
        self._seeks: queue.SimpleQueue[Seek] = queue.SimpleQueue()
        self._seek: Seek | None = None  # what is wanted, as long as the recording is not there
        self._rebuilt: RunView | None = None  # what is to be shown instead; nothing is told until it is
        self._events = open_events(LogPosition())
        self._process = process
        self._writer = ""  # of the run, while all that it has told so far was told again
        self._looked = 0.0  # real seconds since the last look for further events
        self._speed = speed
        self._speed_before = speed or START_SPEED  # of a pause
        self._next: Envelope | None = None
        self._course = Course()
        self._position = 0.0  # how far the recording has been played
        self._subscriptions: list[Subscription] = []
        self._stopped = threading.Event()
        self._has_ended = False

    def clock(self) -> float:
        """The recording's time."""
        return self._course.time or 0.0

    def notes(self) -> tuple[str, ...]:
        """For the state line."""
        if self._writer:
            return (f"following {self._writer}",)
        if self._seek is not None or self._rebuilt is not None:
            return ("replay: seeking",)
        if self._has_ended:
            return ("replay ended",)
        total = max(self._rewinder.total, self._course.played)
        share = f" {percent(self._course.played, total)}%" if self._rewinder.is_complete and total > 0 else ""
        return (f"replay{share} {speed_in_words(self._speed)}",)

    def subscribe(self) -> Subscription:
        """A mailbox with every event from now on; whoever does not empty it holds up the replay."""
        subscription = self.bus.subscribe(2 * MAIL)
        self._subscriptions.append(subscription)
        return subscription

    def send(self, command: Command) -> None:
        """A stop ends the replay; anything else is refused."""
        self.bus.publish(CommandAsked(command.id, type(command).__name__, getattr(command, "behavior", None)))
        if isinstance(command, Stop):
            self._stopped.set()
        self.bus.publish(CommandFinished(command.id, isinstance(command, Stop), REFUSAL))

    def wait(self, timeout: float) -> bool:
        """Whether nothing has to be waited for, which is always so."""
        return True

    def change_speed(self, by: int) -> str:
        """Faster or slower by so many notches; returns the speed in words."""
        at = bisect_right(SPEEDS, self._speed) - 1 if by > 0 else bisect_left(SPEEDS, self._speed)
        self._speed = SPEEDS[max(0, min(len(SPEEDS) - 1, at + by))]
        return "the recording has ended" if self._has_ended else speed_in_words(self._speed)

    def pause(self) -> str:
        """Stand still, or go on at the speed of before; returns the speed in words."""
        if self._speed > 0:
            self._speed_before, self._speed = self._speed, 0.0
        else:
            self._speed = self._speed_before
        return "the recording has ended" if self._has_ended else speed_in_words(self._speed)

    def seek(self, seek: Seek) -> None:
        """Go there as soon as it can be; several that count from here add up."""
        self._seeks.put(seek)

    def rebuilt(self) -> RunView | None:
        """What is to be shown instead of all that was told; nothing is told before `take_over`. None usually."""
        return self._rebuilt

    def take_over(self) -> None:
        """It is shown."""
        self._rebuilt = None

    def advance(self, seconds: float) -> None:
        """Tell what is due so many real seconds later, as far as there is room in every mailbox."""
        if self._rebuilt is not None or self._has_gone():
            return
        self._looked += seconds
        if self._next is None and not self._has_ended and (self._course.time is None or self._looked >= LOOK_SECONDS):
            self._begin()
        self._position = max(self._position, self.clock()) + (seconds * self._speed if self._speed < math.inf else 0.0)
        while self._next is not None and self._speed > 0 and not self._stopped.is_set():
            if any(subscription.num_waiting >= MAIL for subscription in self._subscriptions):
                self._position = self.clock()
                return
            if self._next.time > self._position and self._speed < math.inf and not self._skip_silence(self._next):
                return
            self._tell(self._next)
            self._next = self._read()

    def main(self) -> None:
        """The recording is told until nobody watches any more."""
        before = time.monotonic()
        while not self._stopped.wait(IDLE_BEAT_SECONDS if self._has_ended else BEAT_SECONDS):
            now = time.monotonic()
            self.advance(min(now - before, LONGEST_BEAT_SECONDS))
            before = now
            if not self._rewinder.is_complete:
                self._rewinder.work(AHEAD_SECONDS)

    def crashed(self, error: BaseException) -> None:
        """The thread has died of `error`, a bug of ours."""
        self._has_ended = True
        self.bus.publish(LogEmitted("error", "replay", f"{type(error).__name__}: {error}"))

    def _has_gone(self) -> bool:
        """Whether it goes to another place, or waits for that."""
        while not self._seeks.empty():
            wanted, before = self._seeks.get(), self._seek
            counts_on = before is not None and not wanted.behavior and wanted.share is None
            self._seek = before._replace(by=before.by + wanted.by) if before is not None and counts_on else wanted
        if self._seek is None:
            return False
        self._rewinder.work(SEEK_SECONDS)
        if self._rewinder.is_complete or self._seek == Seek(share=0.0):
            scene, self._events, self._next = self._rewinder.scene(self._seek, self._course.played)
            self._course, self._position = scene.course, scene.course.time or 0.0
            self._has_ended, self._writer, self._looked = False, "", LOOK_SECONDS
            self._rebuilt, self._seek = scene.view, None
        return True

    def _begin(self) -> None:
        """Look for the first event, or for further ones."""
        self._next = self._read()
        if self._course.time is None and self._next is not None:
            self._position = self._next.time

    def _skip_silence(self, envelope: Envelope) -> bool:
        """Go to the next event where it is far away; whether it was."""
        silence = 0.0 if self._course.time is None else envelope.time - self._course.time
        if silence <= SILENT_SECONDS:
            return False
        self._say("info", f"{duration(silence)} without events skipped")
        self._position = envelope.time
        return True

    def _tell(self, envelope: Envelope) -> None:
        self._course.take(envelope)
        self.bus.publish(envelope.event)

    def _read(self) -> Envelope | None:
        """The next event; None where there is none yet, at the end, and where it cannot be read further."""
        self._looked = 0.0
        try:
            envelope = next(self._events, None)
            self._writer = self._process() if envelope is None else ""
            if envelope is None:
                envelope = next(self._events, None)  # what was written before nobody wrote any more
        except (OSError, ValueError, RlTuiError) as error:
            self._say("error", f"the recording cannot be read further: {error}")
            self._has_ended = True
            return None
        if envelope is None and not self._writer:
            self._has_ended = True
            if not self._course.is_over:
                self.bus.publish(RunStateChanged("interrupted", "the recording ends here, before the run did"))
        return envelope

    def _say(self, level: LogLevel, message: str) -> None:
        self.bus.publish(LogEmitted(level, "replay", message))


def speed_in_words(speed: float) -> str:
    """The speed as the state line has it."""
    if speed == 0:
        return "stands still"
    return "all at once" if speed == math.inf else f"{speed:g}x"
