"""A Session over a made-up run: its story goes on in a thread, or by hand."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from rl_tui.engine.session.bus import EventBus, Subscription
from rl_tui.engine.session.messages import (
    Command,
    CommandAsked,
    CommandFinished,
    DevicesSampled,
    Envelope,
    Event,
    ParametersReported,
    RunStateChanged,
    Stop,
    TimeSplit,
    WorkersSampled,
)
from rl_tui.tui.demo.runs import DemoRuns
from rl_tui.tui.demo.script import HOURS, cast, configuration
from rl_tui.tui.demo.story import Story

RUN_ID = "demo"
MAIL = 1_000_000  # events; a whole day of twelve behaviors comes at once
KEPT = 200_000  # events that its list of runs knows of this one
BEAT_SECONDS = 0.2  # from one look at the time to the next
LONGEST_BEAT_SECONDS = 1.0  # the rest of a longer one is lost: the process was suspended


class DemoSession:
    """Any thread may send, subscribe and wait. Either `main` is the main of a thread of its own, or its owner calls
    `advance`; then everything happens in there.

    The story has come as far as `now` once `begin` has played `hours` of past, and then runs `speed` times as fast as
    the clock.
    """

    def __init__(
        self,
        *,
        speed: float = 1.0,
        seed: int = 1,
        behaviors: int = 3,
        hours: float = HOURS,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.bus = EventBus(self.clock)
        self.story = Story(self._publish, now() - hours * 3600, cast(behaviors, hours), seed, RUN_ID)
        self._speed, self._hours, self._seed = speed, hours, seed
        self._kept: deque[Envelope] = deque(maxlen=KEPT)
        self._commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._ended = threading.Event()

    def clock(self) -> float:
        """The story's time."""
        return self.story.time

    @property
    def exit_code(self) -> int:
        """What the process should end with; valid once the run is over."""
        return self.story.exit_code

    def send(self, command: Command) -> None:
        """It is asked for, and obeyed at the next beat; refused when the run is over."""
        behavior = None if isinstance(command, Stop) else command.behavior
        self.bus.publish(CommandAsked(command.id, type(command).__name__, behavior))
        self._commands.put(command)
        if self._ended.is_set():
            self._refuse_waiting()

    def subscribe(self) -> Subscription:
        """A mailbox with every event from now on."""
        return self.bus.subscribe(MAIL)

    def wait(self, timeout: float) -> bool:
        """Whether the run is over, waiting at most `timeout` seconds for it."""
        return self._ended.wait(timeout)

    def runs(self) -> DemoRuns:
        """A made-up folder of runs, with this one in it."""
        roles = [actor.role for actor in self.story.actors.values()]
        written = configuration(roles, self._seed, {role.name: role.hyperparameters for role in roles})
        return DemoRuns(self.clock(), lambda: tuple(self._kept), written, RUN_ID)

    def begin(self) -> None:
        """Publish the past, at once. Before anything else."""
        self.story.begin()
        self.story.play_past(self._hours)

    def advance(self, seconds: float) -> None:
        """Obey what was asked, then let so many real seconds go by."""
        while not self._commands.empty():
            self.story.obey(self._commands.get())
        self.story.pass_time(seconds * self._speed, seconds)
        if self.story.is_over:
            self._end()

    def main(self) -> None:
        """The story goes on until the run is over."""
        before = time.monotonic()
        while not self._ended.is_set():
            with suppress(queue.Empty):  # until the beat is over
                self.story.obey(self._commands.get(timeout=max(0.0, before + BEAT_SECONDS - time.monotonic())))
            now = time.monotonic()
            if now - before >= BEAT_SECONDS or self.story.is_over:
                self.advance(min(now - before, LONGEST_BEAT_SECONDS))
                before = now

    def crashed(self, error: BaseException) -> None:
        """The story's thread has died of `error`, an internal error."""
        self.bus.publish(RunStateChanged("failed", f"{type(error).__name__}: {error}", 1))
        self._end()

    def _publish(self, event: Event) -> None:
        self.bus.publish(event)
        if not isinstance(event, TimeSplit | ParametersReported | DevicesSampled | WorkersSampled):
            self._kept.append(Envelope(len(self._kept) + 1, self.clock(), event))

    def _end(self) -> None:
        self._refuse_waiting()
        self._ended.set()
        self._refuse_waiting()  # what came between

    def _refuse_waiting(self) -> None:
        while True:
            try:
                command = self._commands.get_nowait()
            except queue.Empty:
                return
            self.bus.publish(CommandFinished(command.id, False, "the run is over"))
