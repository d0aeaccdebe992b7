"""`--detach`: a run in a session of its own, which the command waits for until it trains."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TextIO

from rl_tui.tui.command_line.departure import way_back
from rl_tui.tui.terminal.streams import leave_streams, write_stdout

RELAY_SECONDS = 0.2  # from one look at what the run has printed to the next
PATH_BYTES = 1 << 16


class Start:
    """What a run reports to the command that started it. Each process that has it either reports or closes it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def report(self, run: str) -> None:
        """The run in that folder trains, and what it prints from now on is not read."""
        os.write(self._descriptor, os.fsencode(run))
        self.close()

    def close(self) -> None:
        """Nothing will be reported by this process."""
        os.close(self._descriptor)


def start_detached(train: Callable[[Start], int]) -> int:
    """`train` is called in a child process without a terminal: there this returns what that returns, an exit code.

    Here this returns once the run trains, with 0 and the way back to it on stdout, or has ended before, with its exit
    code; until then what it prints is printed. Called before there is any thread.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if not child:
            os.close(reading)
            os.setsid()
            leave_streams()
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            return train(Start(writing))
        os.close(writing)
        with _passing_signals_to(child):
            run = _await_start(reading, [(out, sys.stdout), (err, sys.stderr)])
            if run is None:
                return _exit_code(os.waitpid(child, 0)[1])
    write_stdout(way_back(Path(run)))
    return 0


def _await_start(reading: int, printed: list[tuple[IO[bytes], TextIO]]) -> str | None:
    """The folder of the run that trains; None where it has ended before. What was printed until then is printed."""
    poll = select.poll()
    poll.register(reading)
    shown = [0] * len(printed)
    is_known = False
    while not is_known:
        is_known = bool(poll.poll(RELAY_SECONDS * 1000))
        for number, (source, target) in enumerate(printed):
            content = os.pread(source.fileno(), os.fstat(source.fileno()).st_size, shown[number])
            shown[number] += len(content)
            target.write(content.decode(errors="replace"))
            target.flush()
    run = os.read(reading, PATH_BYTES)
    return os.fsdecode(run) if run else None


@contextlib.contextmanager
def _passing_signals_to(child: int) -> Iterator[None]:
    """Inside, what would end this process is for the run, which then ends as it would in the foreground."""
    numbers = signal.SIGINT, signal.SIGTERM, signal.SIGHUP

    def pass_on(number: int, _: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    former = {number: signal.signal(number, pass_on) for number in numbers}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _exit_code(status: int) -> int:
    """As a shell would have it."""
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code
