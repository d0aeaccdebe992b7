"""How a run is stopped from outside its screen: SIGINT, SIGTERM and SIGHUP."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping
from types import FrameType, TracebackType
from typing import TypeAlias

from rl_tui.engine.session.messages import Stop

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
Disposition: TypeAlias = "Callable[[int, FrameType | None], object] | int | None"


def heeded() -> list[signal.Signals]:
    """Those of SIGNALS that end a run: not a hangup that is ignored."""
    return [number for number in SIGNALS if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN]


def hand_back(previous: Mapping[signal.Signals, Disposition]) -> None:
    """These signals mean again what they meant before; None stands for a handler that is not Python's."""
    for number, disposition in previous.items():
        signal.signal(number, signal.SIG_DFL if disposition is None else disposition)


class StopSignals:
    """Takes note of signals while entered: the first asks for a save and an end, the second for an end, the third ends.

    Lives in the main thread. A handler only takes note, because it may interrupt code that holds a lock; whoever runs
    the main loop calls `take` and sends what it returns. A hangup that was ignored before (nohup) stays ignored.
    """

    def __init__(self, before_leaving: Callable[[], object] | None = None):
        """before_leaving: called at the third signal, e.g. to give the terminal back."""
        self._before_leaving = before_leaving
        self._count = 0
        self._pending: list[Stop] = []
        self._previous: dict[signal.Signals, Disposition] = {}

    def __enter__(self) -> StopSignals:
        for number in heeded():
            self._previous[number] = signal.signal(number, self._note)
        return self

    def take_back(self) -> None:
        """Signals come here again, whatever took them meanwhile."""
        for number in self._previous:
            signal.signal(number, self._note)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        hand_back(self._previous)

    def take(self) -> list[Stop]:
        """The stops asked for since the last call, oldest first."""
        taken, self._pending = self._pending, []
        return taken

    def _note(self, number: int, _: FrameType | None) -> None:
        self._count += 1
        exit_code = 128 + number
        if self._count > 2:
            if self._before_leaving is not None:
                self._before_leaving()
            os._exit(exit_code)
        self._pending.append(Stop("checkpoint" if self._count == 1 else "now", exit_code=exit_code))


class LoopSignals:
    """Lives in the main thread. Between `start` and `stop` a signal is a call in the running loop.

    act: is given 128 + the signal's number.
    """

    def __init__(self, act: Callable[[int], object]) -> None:
        self._act = act
        self._previous: dict[signal.Signals, Disposition] = {}

    def start(self) -> None:
        """Signals come to the loop that runs; a hangup that is ignored (nohup) stays ignored."""
        for number in heeded():
            self._previous[number] = signal.getsignal(number)
            asyncio.get_running_loop().add_signal_handler(number, self._act, 128 + number)

    def stop(self) -> None:
        """Signals mean again what they meant before."""
        for number in self._previous:
            asyncio.get_running_loop().remove_signal_handler(number)
        hand_back(self._previous)
        self._previous.clear()
