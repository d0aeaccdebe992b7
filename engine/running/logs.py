"""The files that record events: the event log, TensorBoard's and, at the end, timers.json."""

from __future__ import annotations

import json
import threading
import time

from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.running.environments import settings_of
from rl_tui.engine.running.writers.tensorboard import TensorBoardWriter
from rl_tui.engine.running.writers.timers import Timers, run_metadata
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import BehaviorStarted, Envelope
from rl_tui.engine.storage.disk import write_atomically
from rl_tui.engine.storage.event_log import JsonLinesWriter
from rl_tui.engine.storage.run_folder import RunFolder

DRAIN_SECONDS = 0.5  # events are written in batches, since every wake-up of this thread delays learning


class RunLogs:
    """Runs in the thread `writers`. Owns the open log files of the run and its own subscription."""

    def __init__(self, folder: RunFolder, config: RunConfig, bus: EventBus, started_at: float):
        self._folder = folder
        self._config = config
        self._bus = bus
        self._started_at = started_at
        self._subscription = bus.subscribe()
        self._closing = threading.Event()
        self._timers = Timers()
        self._is_training = not config.checkpoint_settings.inference
        self._events = JsonLinesWriter(folder.events if self._is_training else folder.inference, append=True)
        self._tensorboard = TensorBoardWriter(lambda behavior: folder.add_behavior(behavior).path)
        self._failures: set[str] = set()

    def main(self) -> None:
        """Write every event, until `close`."""
        try:
            while not self._closing.wait(DRAIN_SECONDS):
                self._write(self._subscription.drain())
            self._write(self._subscription.drain())
        finally:
            self._events.close()
            self._tensorboard.close()

    def close(self) -> None:
        """Let `main` write the events so far, and return. Any thread."""
        self._subscription.close()
        self._closing.set()

    def _write(self, mail: list[Envelope]) -> None:
        for envelope in mail:
            self._events.write(envelope)
            if self._is_training:
                self._write_curves(envelope)
        self._events.flush()
        for failure in {self._events.failed, self._tensorboard.failed} - {None} - self._failures:
            assert failure is not None
            self._failures.add(failure)
            self._bus.log("error", "writers", failure)

    def _write_curves(self, envelope: Envelope) -> None:
        """What TensorBoard and timers.json show of training."""
        self._tensorboard.write(envelope)
        event = envelope.event
        self._timers.add(event)
        if isinstance(event, BehaviorStarted):
            settings = settings_of(self._config, event.behavior)
            self._tensorboard.write_hyperparameters(event.behavior, settings.model_dump(mode="json"))

    def write_timers(self) -> None:
        """Write run_logs/timers.json. Called when `main` is over."""
        body = self._timers.as_json(time.time() - self._started_at, run_metadata(self._started_at))
        try:
            write_atomically(self._folder.timers, json.dumps(body, indent=4).encode())
        except OSError as error:
            self._bus.log("warning", "run", f"{self._folder.timers}: not written ({error.strerror})")
