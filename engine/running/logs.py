"""The files that listen: events, TensorBoard, gauges; and at the end where the time went."""

from __future__ import annotations

import json
import threading
import time

from rl_tui.engine.config.run import RunConfig
from rl_tui.engine.running.environments import settings_of
from rl_tui.engine.running.writers.tensorboard import TensorBoardWriter
from rl_tui.engine.running.writers.timers import GaugeWriter, run_metadata, timers_json
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import BehaviorStarted, Envelope, LogEmitted, TimeSplit
from rl_tui.engine.storage.disk import write_atomically
from rl_tui.engine.storage.event_log import JsonLinesWriter
from rl_tui.engine.storage.run_folder import RunFolder

TAKE_SECONDS = 0.5  # what is told meanwhile waits: whoever learns should not be held up for every event


class RunLogs:
    """Lives in the thread `writers`. Owns the open log files of the run and its own subscription."""

    def __init__(self, folder: RunFolder, config: RunConfig, bus: EventBus, started_at: float):
        self._folder = folder
        self._config = config
        self._bus = bus
        self._started_at = started_at
        self._subscription = bus.subscribe()
        self._closing = threading.Event()
        self._gauges = GaugeWriter()
        self._is_training = not config.checkpoint_settings.inference
        self._events = JsonLinesWriter(folder.events if self._is_training else folder.inference, append=True)
        self._tensorboard = TensorBoardWriter(lambda behavior: folder.add_behavior(behavior).path)
        self._time_splits: dict[str, TimeSplit] = {}
        self._failures: set[str] = set()

    def main(self) -> None:
        """Write everything that is told, until `close`."""
        try:
            while not self._closing.wait(TAKE_SECONDS):
                self._write(self._subscription.drain())
            self._write(self._subscription.drain())
        finally:
            self._events.close()
            self._tensorboard.close()

    def close(self) -> None:
        """Let `main` write what was told so far, and return. Any thread."""
        self._subscription.close()
        self._closing.set()

    def _write(self, mail: list[Envelope]) -> None:
        for envelope in mail:
            event = envelope.event
            self._events.write(envelope)
            if self._is_training:
                self._write_curves(envelope)
            if isinstance(event, TimeSplit):
                self._time_splits[event.behavior] = event
        self._events.flush()
        for failure in {self._events.failed, self._tensorboard.failed} - {None} - self._failures:
            assert failure is not None
            self._failures.add(failure)
            self._bus.publish(LogEmitted("error", "writers", failure))

    def _write_curves(self, envelope: Envelope) -> None:
        """What TensorBoard and the gauges show of training."""
        self._tensorboard.write(envelope)
        self._gauges.write(envelope)
        event = envelope.event
        if isinstance(event, BehaviorStarted):
            settings = settings_of(self._config, event.behavior)
            self._tensorboard.write_hyperparameters(event.behavior, settings.model_dump(mode="json"))

    def write_timers(self) -> None:
        """run_logs/timers.json says where the time went, behavior by behavior. Called when `main` is over."""
        metadata, seconds = run_metadata(self._started_at), time.time() - self._started_at
        body = timers_json(seconds, self._time_splits, self._gauges.gauges, metadata)
        write_atomically(self._folder.timers, json.dumps(body, indent=4).encode())
