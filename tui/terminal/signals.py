"""Stopping a run from outside its screen: SIGINT, SIGTERM and SIGHUP."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import time
from collections.abc import Callable, Mapping
from types import FrameType, TracebackType
from typing import TypeAlias

from rl_tui.engine.session.messages import Stop

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
REPEAT_SECONDS = 1.0  # a scheduler signals a job's script and what it started, and the script passes it on
Disposition: TypeAlias = "Callable[[int, FrameType | None], object] | int | None"


def stop_signals() -> list[signal.Signals]:
    """Those of SIGNALS that stop a run: not a hangup that is ignored."""
    return [number for number in SIGNALS if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN]


def restore_signals(previous: Mapping[signal.Signals, Disposition]) -> None:
    """Install the previous handlers again; None stands for a handler that is not Python's."""
    for number, disposition in previous.items():
        signal.signal(number, signal.SIG_DFL if disposition is None else disposition)


class StopSignals:
    """While entered, the first signal means save and stop, the second stop, and the third ends the process. A SIGTERM
    that comes again within a second is the same one.

    Runs in the main thread. The handler only records the signal, because it may interrupt code that holds a lock; the
    main loop calls `pop_stops` and sends what it returns. A hangup that was ignored before (nohup) stays ignored.
    """

    def __init__(self, before_leaving: Callable[[], object] | None = None):
        """before_leaving: called at the third signal, e.g. to restore the terminal."""
        self._before_leaving = before_leaving
        self._count = 0
        self._terminated_at = -math.inf
        self._pending: list[Stop] = []
        self._previous: dict[signal.Signals, Disposition] = {}

    def __enter__(self) -> StopSignals:
        for number in stop_signals():
            self._previous[number] = signal.signal(number, self._record)
        return self

    def reinstall(self) -> None:
        """Receive signals again, after something else did."""
        for number in self._previous:
            signal.signal(number, self._record)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        restore_signals(self._previous)

    def pop_stops(self) -> list[Stop]:
        """The stops that were requested since the last call, oldest first."""
        stops, self._pending = self._pending, []
        return stops

    def _record(self, number: int, _: FrameType | None) -> None:
        if number == signal.SIGTERM:
            earlier, self._terminated_at = self._terminated_at, time.monotonic()
            if self._terminated_at - earlier < REPEAT_SECONDS:
                return
        self._count += 1
        exit_code = 128 + number
        if self._count > 2:
            if self._before_leaving is not None:
                self._before_leaving()
            os._exit(exit_code)
        self._pending.append(Stop("checkpoint" if self._count == 1 else "now", exit_code=exit_code))


class LoopSignals:
    """Runs in the main thread. Between `start` and `stop` a signal is a call in the running loop.

    act: called with 128 + the signal's number.
    """

    def __init__(self, act: Callable[[int], object]) -> None:
        self._act = act
        self._previous: dict[signal.Signals, Disposition] = {}

    def start(self) -> None:
        """Receive signals in the running loop; a hangup that is ignored (nohup) stays ignored."""
        for number in stop_signals():
            self._previous[number] = signal.getsignal(number)
            asyncio.get_running_loop().add_signal_handler(number, self._act, 128 + number)

    def stop(self) -> None:
        """Install the previous handlers again."""
        for number in self._previous:
            asyncio.get_running_loop().remove_signal_handler(number)
        restore_signals(self._previous)
        self._previous.clear()
