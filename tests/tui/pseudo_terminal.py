"""A program on a pseudo-terminal whose screen can be read."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pyte

SYNCHRONIZED_QUERY, SYNCHRONIZED_YES = b"\x1b[?2026$p", b"\x1b[?2026;2$y"


class PseudoTerminal:
    """Owns the program's process, which leads a session of its own on this terminal. raw: all it has written."""

    def __init__(self, command: list[str], size: tuple[int, int]) -> None:
        self.screen = pyte.Screen(*size)
        self.raw = bytearray()
        self._stream = pyte.ByteStream(self.screen)
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        self.process = subprocess.Popen(
            command,
            stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509  # no other way to own a terminal
        )  # fmt: skip
        os.close(slave)

    def close(self) -> None:
        """The program is gone, however it stands."""
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.hang_up()

    def hang_up(self) -> None:
        """The program sees what it would see when an SSH connection drops."""
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    def watch(self, seconds: float) -> None:
        """Read what comes for that long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._read(min(left, 0.05))

    def press(self, key: str) -> None:
        """Send the characters."""
        os.write(self._master, key.encode())

    def text(self) -> str:
        """What is on the screen."""
        return "\n".join(self.screen.display)

    def wait_for(self, pattern: str, seconds: float = 10.0, absent: bool = False) -> None:
        """`pattern` is on the screen, or off it with `absent`. AssertionError past the deadline."""
        end = time.monotonic() + seconds
        while bool(re.search(pattern, self.text())) == absent:
            assert time.monotonic() < end, f"{'still there' if absent else 'not there'}: {pattern}\n{self.text()}"
            self._read(0.05)

    def wait(self, seconds: float) -> int:
        """The program's exit status. AssertionError past the deadline."""
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < end, f"still running\n{self.text()}"
            self._read(0.02)
        return self.process.wait()

    def _read(self, seconds: float) -> None:
        if self._master < 0:
            time.sleep(seconds)
            return
        if not select.select([self._master], [], [], seconds)[0]:
            return
        with contextlib.suppress(OSError):  # EIO: the program has closed its side
            read = os.read(self._master, 65536)
            if SYNCHRONIZED_QUERY in read:
                os.write(self._master, SYNCHRONIZED_YES)
            self.raw += read
            self._stream.feed(read)
