"""What the environments of a worker process report besides steps, also while a call into one of them lasts."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable

from rl_tui.engine.sampling.environments.base import Environment, Reporting
from rl_tui.engine.sampling.pools.wire import Kind, Record, write

INTERVAL_SECONDS = 0.2  # between looks at environments whose call has not returned


class Forwarder:
    """Owns the pipe to the pool. With environments that report, a thread of its own looks at them now and then."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()  # both threads write to the pipe
        self._reporting: list[Reporting] = []
        self._awaits = ""

    def watch(self, environments: Iterable[Environment]) -> None:
        """Forward what these report from now on."""
        self._reporting = [environment for environment in environments if isinstance(environment, Reporting)]
        if self._reporting:
            threading.Thread(target=self._forward, name="reports", daemon=True).start()

    def write(self, records: list[Record]) -> None:
        """Send records to the pool, after what was reported before them."""
        with self._lock:
            records = [*self._reports(), *records]
            if records:
                write(self._pipe, records)

    def _forward(self) -> None:
        pause = threading.Event()
        with contextlib.suppress(BrokenPipeError):  # the pool is gone, and this process with it
            while not pause.wait(INTERVAL_SECONDS):
                self.write([])

    def _reports(self) -> list[Record]:
        records = [
            Record(Kind.NOTE, payload=[level, text])
            for environment in self._reporting
            for level, text in environment.pop_notes()
        ]
        awaits = next((environment.awaits for environment in self._reporting if environment.awaits), "")
        if awaits != self._awaits:
            self._awaits = awaits
            records.append(Record(Kind.AWAITS, payload=awaits))
        return records
