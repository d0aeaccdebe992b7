"""A player's process: how it is started, whether it lives, how it ended, and what it wrote.

It stays in this process's group, so that it ends with it, and what it starts in turn does, too.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import psutil

from rl_tui.engine.process.files import open_regular

_TAIL_LINES = 30
_TAIL_BYTES = 16_384
_KILL_SECONDS = 5.0  # for the kernel to end a process that was killed


@dataclass(frozen=True)
class LaunchPlan:
    """What is started. number: of the copy in the run. log_folder: None for no log and no output.

    shows_output: what the player prints goes to this process's own output instead of a file.
    """

    path: Path
    number: int
    env_args: Sequence[str] = ()
    no_graphics: bool = False
    log_folder: Path | None = None
    shows_output: bool = False

    def command(self, port: int) -> list[str]:
        """The program and its arguments, for a trainer that listens on this port."""
        words = [str(self.path)]
        if self.no_graphics:
            words += ["-nographics", "-batchmode"]
        words += ["--mlagents-port", str(port)]
        if self.log is not None and "-logfile" not in map(str.lower, self.env_args):
            words += ["-logFile", str(self.log)]
        return [*words, *self.env_args]

    @property
    def log(self) -> Path | None:
        """The file that Unity writes to."""
        own = _own_log(self.env_args)
        if own is not None:
            return own
        return None if self.log_folder is None else self.log_folder / f"Player-{self.number}.log"

    @property
    def output(self) -> Path | None:
        """The file with what the player prints; None if it is dropped or shown."""
        if self.log_folder is None or self.shows_output:
            return None
        return self.log_folder / f"Player-{self.number}.out"


def _own_log(words: Sequence[str]) -> Path | None:
    """The log that the user's own arguments name."""
    for word, value in pairwise(words):
        if word.lower() == "-logfile":
            return Path(value).absolute()
    return None


class Player:
    """One process and all that it started. Used by one thread, except for `processes`."""

    def __init__(self, plan: LaunchPlan) -> None:
        self.plan = plan
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, port: int) -> None:
        """Start it. Raises OSError if the system cannot."""
        for file in (self.plan.log, self.plan.output):
            if file is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
                _keep_previous(file)
        command = self.plan.command(port)
        if self.plan.shows_output:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
            return
        with _output_file(self.plan.output) as output:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    @property
    def is_started(self) -> bool:
        """Whether there ever was a process."""
        return self._process is not None

    def processes(self) -> list[psutil.Process]:
        """Those of the player that run. A wrapper may have ended and left the player behind."""
        if self._process is None:
            return []
        found = _group() if os.getpgrp() == os.getpid() else _tree(self._process.pid)
        return [process for process in found if _runs(process)]

    @property
    def is_alive(self) -> bool:
        """Whether any of its processes runs."""
        assert self._process is not None
        return self._process.poll() is None or bool(self.processes())

    def wait(self, seconds: float) -> bool:
        """Whether it has ended within this time."""
        assert self._process is not None
        deadline = time.monotonic() + seconds
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
            psutil.wait_procs(self.processes(), max(0.0, deadline - time.monotonic()))
        return not self.is_alive

    def kill(self) -> None:
        """End it and all that it started."""
        if self._process is None:
            return
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                process.kill()
        if self._process.poll() is None:
            self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_KILL_SECONDS)

    def how_it_ended(self) -> str:
        """`exited with code 3` or `was killed by SIGSEGV`, for one that has ended."""
        assert self._process is not None
        status = self._process.poll()
        if status is None:
            return "is still running"
        if status < 0:
            return f"was killed by {_signal_name(-status)}"
        by = f" ({_signal_name(status - 128)})" if status > 128 else ""  # as a shell reports its child
        return f"exited with code {status}{by}"

    def tail(self) -> str:
        """The last lines of its log and of what it printed, with the names of these files."""
        files = [file for file in (self.plan.log, self.plan.output) if file is not None]
        return "\n".join(part for part in map(_tail_of, files) if part)


def _keep_previous(file: Path) -> None:
    """What an earlier player wrote stays beside it, as Unity itself does: `Player-0-prev.log`."""
    if file.is_file() and file.stat().st_size:
        with contextlib.suppress(OSError):
            file.replace(file.with_stem(f"{file.stem}-prev"))


def _output_file(path: Path | None) -> BinaryIO:
    return open(os.devnull, "wb") if path is None else open(path, "ab", opener=open_regular)


def _tail_of(file: Path) -> str:
    try:
        with open(file, "rb", opener=open_regular) as stream:
            stream.seek(max(0, file.stat().st_size - _TAIL_BYTES))
            lines = stream.read().lstrip(b"\0").decode(errors="replace").split("\n")  # zeros of a log that was emptied
    except OSError:
        return ""
    ending = "\n".join(lines[-_TAIL_LINES - 1 :]).strip()
    return f"{file}:\n{ending}" if ending else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _tree(pid: int) -> list[psutil.Process]:
    try:
        first = psutil.Process(pid)
        return [first, *first.children(recursive=True)]
    except psutil.Error:
        return []


def _group() -> list[psutil.Process]:
    """All others in the group that this process leads."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if process.pid not in (0, os.getpid()) and os.getpgid(process.pid) == os.getpid():
                found.append(process)
    return found


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD))
    except psutil.Error:
        return False
