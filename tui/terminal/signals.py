"""What signals ask of a run: SIGINT, SIGTERM and SIGHUP to stop, SIGUSR1 to save a checkpoint and go on."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import time
from collections.abc import Callable, Mapping
from types import FrameType, TracebackType
from typing import TypeAlias

from rl_tui.engine.process.hangups import ENDING, Hangups
from rl_tui.engine.process.vital_signs import SIGNS
from rl_tui.engine.session.messages import SaveCheckpoint, Stop

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SAVING, IGNORED = signal.SIGUSR1, signal.SIGUSR2
IGNORED_NOTE = "SIGUSR2 was ignored; SIGUSR1 saves a checkpoint, and SIGTERM saves and stops"
GONE_NOTE = "the terminal is gone: training continues; `rl-tui attach` shows it again"
REPEAT_SECONDS = 1.0  # a scheduler signals a job's script and what it started, and the script passes it on
Disposition: TypeAlias = "Callable[[int, FrameType | None], object] | int | None"


def run_signals() -> list[signal.Signals]:
    """Those that a run handles: not a hangup that is ignored."""
    is_hangup_ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return [number for number in (*STOPPING, SAVING, IGNORED) if number != signal.SIGHUP or not is_hangup_ignored]


def restore_signals(previous: Mapping[signal.Signals, Disposition]) -> None:
    """Install the previous handlers again; None stands for a handler that is not Python's."""
    for number, disposition in previous.items():
        signal.signal(number, signal.SIG_DFL if disposition is None else disposition)


class RunSignals:
    """While entered, the first of the signals that stop means save and stop, the second stop, and the third ends the
    process. A SIGTERM that comes again within a second is the same one. SIGUSR1 saves, SIGUSR2 does nothing.

    Runs in the main thread. The handler only records the signal, because it may interrupt code that holds a lock; the
    main loop calls `pop_commands` and sends what it returns, and `pop_notes` and shows that. A hangup that was ignored
    before (nohup) stays ignored.
    """

    def __init__(self, before_leaving: Callable[[], object] | None = None, hangups: Hangups = ENDING):
        """before_leaving: called at the third signal, e.g. to restore the terminal."""
        self._before_leaving, self._hangups = before_leaving, hangups
        self._count = 0
        self._terminated_at = -math.inf
        self._pending: list[Stop | SaveCheckpoint] = []
        self._notes: list[str] = []
        self._has_lost_terminal = False
        self._previous: dict[signal.Signals, Disposition] = {}

    def __enter__(self) -> RunSignals:
        for number in run_signals():
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

    def pop_commands(self) -> list[Stop | SaveCheckpoint]:
        """What was requested since the last call, oldest first."""
        commands, self._pending = self._pending, []
        return commands

    def pop_notes(self) -> list[str]:
        """A line for each signal that was ignored since the last call."""
        notes, self._notes = self._notes, []
        return notes

    def _record(self, number: int, _: FrameType | None) -> None:
        if SIGNS.is_copy(number):
            return
        if number == SAVING:
            self._pending.append(SaveCheckpoint())
        elif number == IGNORED:
            self._notes.append(IGNORED_NOTE)
        elif number == signal.SIGHUP and self._hangups.is_survived():
            if not self._has_lost_terminal:
                self._notes.append(GONE_NOTE)
            self._has_lost_terminal = True
        else:
            self._record_stop(number)

    def _record_stop(self, number: int) -> None:
        if number == signal.SIGTERM:
            earlier, self._terminated_at = self._terminated_at, time.monotonic()
            if self._terminated_at - earlier < REPEAT_SECONDS:
                return
        self._count += 1
        exit_code = 128 + number
        if self._count > 2:
            if self._before_leaving is not None:
                self._before_leaving()
            SIGNS.enter("over", exit_code)
            os._exit(exit_code)
        self._pending.append(Stop("checkpoint" if self._count == 1 else "now", exit_code=exit_code))


class LoopSignals:
    """Runs in the main thread. Between `start` and `stop` a signal is a call in the running loop.

    act: called with the signal's number.
    """

    def __init__(self, act: Callable[[int], object]) -> None:
        self._act = act
        self._previous: dict[signal.Signals, Disposition] = {}

    def start(self) -> None:
        """Receive signals in the running loop; a hangup that is ignored (nohup) stays ignored."""
        for number in run_signals():
            self._previous[number] = signal.getsignal(number)
            asyncio.get_running_loop().add_signal_handler(number, self._receive, number)

    def _receive(self, number: int) -> None:
        if not SIGNS.is_copy(number):
            self._act(number)

    def stop(self) -> None:
        """Install the previous handlers again."""
        for number in self._previous:
            asyncio.get_running_loop().remove_signal_handler(number)
        restore_signals(self._previous)
        self._previous.clear()
