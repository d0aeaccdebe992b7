"""What a run says of itself where another process can read it, whatever the run's own process is doing or did last.

The process that watches a run shares this memory with it. Where none does, the same is written to plain bytes.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import signal
import struct
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

PAIR_SECONDS = 5.0  # between the two arrivals of one signal, on a busy machine

Phase = Literal["starting", "training", "saving", "over", "playing"]
Thread = Literal["main", "writers"]

_PHASES: tuple[Phase, ...] = ("starting", "training", "saving", "over", "playing")
_CALLS = ("", "start", "reset", "step", "set_parameters", "close", "render")
_PHASE, _EXIT_CODE, _SCREEN, _LEFT = 0, 1, 2, 3
_BEATS: dict[Thread, int] = {"main": 8, "writers": 16}
_SECONDS, _FORWARDED = 24, 64  # of _FORWARDED a byte for each signal
_LOG, _LOG_BYTES = 256, 4096 - 256
_COMMAND, _COMMAND_BYTES = 4096, 8192
_MARKS, _MARK_BYTES, _NUM_MARKS = _COMMAND + _COMMAND_BYTES, 128, 32
_SIZE = _MARKS + _NUM_MARKS * _MARK_BYTES


class VitalSigns:
    """Every write is a few bytes, without a lock: one thread writes each of them.

    watcher: the process that was started, if it watches this one; else 0.
    """

    def __init__(self) -> None:
        self.watcher = 0
        self.memory: bytearray | mmap.mmap = bytearray(_SIZE)
        self._num_marks = 0
        self._arrivals: Counter[tuple[int, str]] = Counter()  # within PAIR_SECONDS of each other
        self._arrived_at = -math.inf
        self._seen_forwarded: dict[int, int] = {}

    def share(self) -> None:
        """From now on a process that this one forks writes what this one reads, and the other way round."""
        self.memory = mmap.mmap(-1, _SIZE)

    @property
    def phase(self) -> Phase:
        """Before "training" there is nothing to save; "saving" comes after a stop; what is "over" only has to end, and
        "playing" learns nothing."""
        return _PHASES[self.memory[_PHASE]]

    def enter(self, phase: Phase, exit_code: int = 0) -> None:
        """exit_code: of the process, once it is over."""
        self.memory[_EXIT_CODE] = exit_code & 0xFF
        self.memory[_PHASE] = _PHASES.index(phase)

    @property
    def exit_code(self) -> int:
        """What the process ends with; valid once it is over."""
        return self.memory[_EXIT_CODE]

    @property
    def has_screen(self) -> bool:
        """Whether the terminal shows a screen that has to be left."""
        return bool(self.memory[_SCREEN])

    @has_screen.setter
    def has_screen(self, is_on: bool) -> None:
        self.memory[_SCREEN] = is_on

    @property
    def has_left(self) -> bool:
        """Whether this process goes on without the one that was started."""
        return bool(self.memory[_LEFT])

    def leave(self, sign: Callable[[], object]) -> None:
        """The process that was started ends, and leaves another one to watch this one. sign: called before that, once
        `process_id` is that of this process. Raises OSError."""
        watcher, self.watcher = self.watcher, 0
        sign()
        self.memory[_LEFT] = True
        os.kill(watcher, signal.SIGCHLD)  # it looks

    def beat(self, thread: Thread) -> None:
        """That thread runs, and so does the interpreter. "main" is the one that handles signals, where it is in no call
        that lasts."""
        struct.pack_into("<Q", self.memory, _BEATS[thread], self.num_beats(thread) + 1)

    def num_beats(self, thread: Thread) -> int:
        """How often `beat` was called by it."""
        return int(struct.unpack_from("<Q", self.memory, _BEATS[thread])[0])

    @property
    def call_seconds(self) -> float:
        """How long a call into an environment may keep the interpreter from everything else; 0 for no limit."""
        return float(struct.unpack_from("<d", self.memory, _SECONDS)[0])

    @call_seconds.setter
    def call_seconds(self, seconds: float) -> None:
        struct.pack_into("<d", self.memory, _SECONDS, seconds)

    def count_forwarded(self, number: int) -> None:
        """The watching process is about to send this signal on."""
        self.memory[_FORWARDED + number] = (self.memory[_FORWARDED + number] + 1) & 0xFF

    def num_forwarded(self, number: int) -> int:
        """How often it has, modulo 256."""
        return self.memory[_FORWARDED + number]

    def is_copy(self, number: int) -> bool:
        """Whether this arrival of a signal was counted already: what is sent to a group of processes reaches this one
        twice, directly and from the process that watches it. Called once for each arrival."""
        now = time.monotonic()
        if now - self._arrived_at > PAIR_SECONDS:
            self._arrivals.clear()
        self._arrived_at = now
        forwarded = self.num_forwarded(number)
        source = "direct" if forwarded == self._seen_forwarded.get(number, 0) else "forwarded"
        self._seen_forwarded[number] = forwarded
        self._arrivals[number, source] += 1
        other = self._arrivals[number, "forwarded" if source == "direct" else "direct"]
        return self._arrivals[number, source] <= other

    @property
    def log(self) -> str:
        """The file for what environments print; "" while there is none."""
        return self._text(_LOG, _LOG_BYTES)

    @log.setter
    def log(self, path: str) -> None:
        self._write(_LOG, _LOG_BYTES, path)

    @property
    def next_command(self) -> list[str]:
        """The command line of rl-tui that is to follow this one, if any."""
        words: list[str] = json.loads(self._text(_COMMAND, _COMMAND_BYTES) or "[]")
        return words

    @next_command.setter
    def next_command(self, words: Sequence[str]) -> None:
        text = json.dumps(list(words))
        self._write(_COMMAND, _COMMAND_BYTES, text if len(text) < _COMMAND_BYTES else "")

    def new_mark(self, name: str) -> CallMark:
        """Where calls into that environment are marked; the last one is shared by all that come later."""
        at = _MARKS + min(self._num_marks, _NUM_MARKS - 1) * _MARK_BYTES
        self._num_marks += 1
        self._write(at + 1, _MARK_BYTES - 1, name)
        return CallMark(self, at)

    def calls(self) -> list[str]:
        """The calls into environments that have not returned, such as "gymnasium:CartPole-v1: step"."""
        places = range(_MARKS, _SIZE, _MARK_BYTES)
        return [f"{self._text(at + 1, _MARK_BYTES - 1)}: {_CALLS[self.memory[at]]}" for at in places if self.memory[at]]

    def _text(self, at: int, length: int) -> str:
        return bytes(self.memory[at : at + length]).partition(b"\0")[0].decode(errors="ignore")

    def _write(self, at: int, length: int, text: str) -> None:
        content = text.encode(errors="replace")[: length - 1]
        self.memory[at : at + length] = content.ljust(length, b"\0")


class CallMark:
    """Marks the calls into one environment of this process. Used by one thread."""

    def __init__(self, signs: VitalSigns, at: int) -> None:
        self._signs = signs
        self._at = at

    def begin(self, doing: str) -> None:
        """A call begins."""
        self._signs.memory[self._at] = _CALLS.index(doing)

    def end(self) -> None:
        """It has returned."""
        self._signs.memory[self._at] = 0


SIGNS = VitalSigns()


def this_process() -> str:
    """The process that the user has started, as lock files and summaries name one: "pid 123 on host"."""
    return f"pid {process_id()} on {os.uname().nodename}"


def process_id() -> int:
    """Of the process that the user has started."""
    return SIGNS.watcher or os.getpid()
