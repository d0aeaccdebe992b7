"""What records events: the event log, the writers of the configuration and, at the end, timers.json."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.config.writers import TENSORBOARD
from rl_tui.engine.process.vital_signs import SIGNS
from rl_tui.engine.running.log_limits import LogLimits
from rl_tui.engine.running.triggers import Trigger
from rl_tui.engine.running.writers.base import WriterContext
from rl_tui.engine.running.writers.guarded import DRAIN_SECONDS, GuardedWriter, WriterThreads, source_of
from rl_tui.engine.running.writers.timers import Timers, run_metadata
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import LogLevel
from rl_tui.engine.storage.disk import write_atomically
from rl_tui.engine.storage.event_log import JsonLinesWriter, last_epoch
from rl_tui.engine.storage.run_folder import RunFolder

CHECK_SECONDS = 1.0  # between two checks for logs that are full: an environment prints some 100 MB meanwhile


class RunLogs:
    """Runs in the thread `writers`, with TensorBoard's writer; every other one has a thread of its own.

    Owns the open log files of the run, its own subscription, and the threads of the writers.
    """

    def __init__(self, folder: RunFolder, config: RunConfig, bus: EventBus, started_at: float):
        """config: the effective one, with the run's id."""
        self._folder = folder
        self._config = config
        self._bus = bus
        self._started_at = started_at
        self._closing = threading.Event()
        self._timers = Timers()
        self._is_training = not config.checkpoint_settings.inference
        events = folder.events if self._is_training else folder.inference
        self._events = JsonLinesWriter(events, append=True)
        with suppress(OSError, ValueError):  # what cannot be read cannot be joined with what follows
            bus.epoch = last_epoch(events) + 1
        self._subscription = bus.subscribe()  # no event of its log has another epoch
        self._has_failed = False
        self._limits = LogLimits(folder.run_logs, partial(bus.log, "warning", "run"))
        self._size_check = Trigger(CHECK_SECONDS, by_clock=True)
        bus.keep_whole = self._limits.keep_whole
        SIGNS.log = str(folder.output)
        writers = self._guarded_writers() if self._is_training else {}
        self._tensorboard = writers.pop(TENSORBOARD, None)
        self._others = WriterThreads(writers, bus)

    def _guarded_writers(self) -> dict[str, GuardedWriter]:
        def context(name: str) -> WriterContext:
            return WriterContext(
                run_id=self._folder.run_id,
                folder=self._folder.path,
                started_at=self._started_at,
                resumed=self._folder.is_resumed,
                configuration=self._config.model_dump(mode="json"),
                folder_of=lambda behavior: self._folder.add_behavior(behavior).path,
                log=partial(self._log, source_of(name)),
            )

        return {
            name: GuardedWriter(name, settings, context(name), self._bus, self._folder.output)
            for name, settings in self._config.writers.items()
            if settings is not None
        }

    def _log(self, source: str, level: LogLevel, message: str) -> None:
        self._bus.log(level, source, message)

    def main(self) -> None:
        """Write every event, until `close`."""
        try:
            while not self._closing.wait(DRAIN_SECONDS):
                SIGNS.beat("writers")
                self.write_pending()
            self.write_pending()
        finally:
            self.close_files()

    def close_files(self) -> None:
        """Close what `write_pending` writes."""
        self._events.close()
        if self._tensorboard is not None:
            self._tensorboard.close()

    def start_writers(self, on_failure: Callable[[BaseException], None]) -> None:
        """Let those with threads of their own write. Called once, when the run trains."""
        self._others.start(on_failure)

    def check_writers(self) -> None:
        """Log once of each that has lost events."""
        self._others.check()

    def close(self, is_now: bool) -> None:
        """Let `main` write the events so far, and return. The writers with threads of their own have ended before, or
        are left behind. is_now: the run was stopped without saving."""
        self._others.close(is_now)
        self._subscription.close()
        self._closing.set()

    def write_pending(self) -> None:
        """Write the events since the last call. Called by `main`, or in its place where no thread runs that."""
        self._size_check.fire(time.monotonic(), lambda _: self._limits.check())
        for envelope in self._subscription.drain():
            self._events.write(envelope)
            if self._is_training:
                self._timers.add(envelope.event)
            if self._tensorboard is not None:
                self._tensorboard.write(envelope)
        self._events.flush()
        if self._events.failed is not None and not self._has_failed:
            self._has_failed = True
            self._bus.log("error", "writers", self._events.failed)

    def write_timers(self) -> None:
        """Write run_logs/timers.json. Called when `main` is over."""
        body = self._timers.as_json(time.time() - self._started_at, run_metadata(self._started_at))
        try:
            write_atomically(self._folder.timers, json.dumps(body, indent=4).encode())
        except OSError as error:
            self._bus.log("warning", "run", f"{self._folder.timers}: not written ({error.strerror})")
