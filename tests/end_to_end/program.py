"""The whole program as a user meets it: in a process with pipes, or on a terminal of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pyte

from engine.session.messages import Event, decode

ROOT = Path(__file__).parent.parent.parent
COMMAND = [sys.executable, "-W", "error::ResourceWarning", "-m", "tui"]
DEADLINE_SECONDS = 60.0  # for anything that takes a few seconds on an idle machine
KEYS = {"escape": "\x1b", "enter": "\r", "ctrl+c": "\x03"}

CARTPOLE = """\
behaviors:
  CartPole:
    trainer_type: ppo
    hyperparameters: {batch_size: 64, buffer_size: 512}
    network_settings: {hidden_units: 32, num_layers: 1}
    time_horizon: 128
    max_steps: 2000
    summary_freq: 500
    checkpoint_interval: 1000
env_settings:
  env: gymnasium:CartPole-v1
  num_envs: 4
  seed: 1
"""


def surroundings(**more: str) -> dict[str, str]:
    """The environment variables of a user who has the project on the path."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "LANG": "C.UTF-8"} | more


def start(*words: str, folder: Path) -> subprocess.Popen[str]:
    """`rl-tui` with these words, in that folder, with stdin closed and stdout and stderr piped."""
    return subprocess.Popen(
        [*COMMAND, *words],
        cwd=folder,
        env=surroundings(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], seconds: float = DEADLINE_SECONDS) -> tuple[int, str, str]:
    """Its exit code, stdout and stderr once it has ended; killed, with what it said, when it does not."""
    try:
        stdout, stderr = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        stdout, stderr = process.communicate()
        raise AssertionError(f"still running after {seconds} s:\n{stdout}\n{stderr}") from None
    return process.returncode, stdout, stderr


def run(*words: str, folder: Path) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of one whole command."""
    return finish(start(*words, folder=folder))


def read_until(process: subprocess.Popen[str], pattern: str) -> str:
    """Everything the process said on stdout up to the line that matches."""
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if re.search(pattern, line):
            return said
    raise AssertionError(f"ended with {process.wait()} before saying {pattern!r}:\n{said}")


def events_of(run_folder: Path) -> list[Event]:
    """All that the run told, from its events.jsonl."""
    return [decode(line).event for line in (run_folder / "events.jsonl").read_text().splitlines()]


class Terminal:
    """`rl-tui` on a pseudo-terminal whose screen can be read. Use as a context manager; it ends with the block."""

    def __init__(self, *words: str, folder: Path, columns: int = 120, rows: int = 40, stdin: int | None = None):
        """stdin: another standard input than the terminal."""
        self.screen = pyte.Screen(columns, rows)
        self.raw = bytearray()
        self._stream = pyte.ByteStream(self.screen)
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-c", _TAKE_TERMINAL, *COMMAND, *words],
            cwd=folder,
            env=surroundings(PYTHONPATH=f"{folder}{os.pathsep}{ROOT}"),
            stdin=slave if stdin is None else stdin,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.hang_up()

    def hang_up(self) -> None:
        """Close the other side, as when a connection drops."""
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    def press(self, key: str) -> None:
        """Type one key."""
        os.write(self._master, KEYS.get(key, key).encode())

    @property
    def text(self) -> str:
        """What is on the screen."""
        return "\n".join(self.screen.display)

    def wait_for(self, pattern: str, seconds: float = DEADLINE_SECONDS) -> None:
        """The pattern is on the screen."""
        end = time.monotonic() + seconds
        while not re.search(pattern, self.text):
            assert time.monotonic() < end, f"not on the screen after {seconds} s: {pattern}\n{self.text}"
            alive = self._read(0.1)
            assert alive or re.search(pattern, self.text), f"ended without showing {pattern}\n{self.text}"

    def wait(self, seconds: float = DEADLINE_SECONDS) -> int:
        """Its exit code, once it has ended and all it said was read."""
        end = time.monotonic() + seconds
        while self._master >= 0 and self._read(0.1):
            assert time.monotonic() < end, f"still running after {seconds} s:\n{self.text}"
        return self.process.wait(max(1.0, end - time.monotonic()))

    def _read(self, seconds: float) -> bool:
        """Take in what comes within that time; False when nothing can come any more."""
        readable, _, _ = select.select([self._master], [], [], seconds)
        if readable:
            try:
                received = os.read(self._master, 65536)
            except OSError:  # Linux says EIO when the last process has closed the other side
                return False
            self.raw += received
            self._stream.feed(received)
            return bool(received)
        return self.process.poll() is None


# Runs in the child before the program: makes the pseudo-terminal on stdout its controlling terminal.
_TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(1, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
