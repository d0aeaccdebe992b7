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
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyte

from tests.deadline import DEADLINE_SECONDS
from tests.warm_start import WarmProcess

SYNCHRONIZED_QUERY, SYNCHRONIZED_YES = b"\x1b[?2026$p", b"\x1b[?2026;2$y"
KEYS = {
    "escape": "\x1b", "enter": "\r", "tab": "\t", "ctrl+c": "\x03", "ctrl+p": "\x10", "ctrl+z": "\x1a",
    "up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "end": "\x1b[F", "home": "\x1b[H",
}  # fmt: skip


class PseudoTerminal:
    """Owns the program's process, which leads a session of its own on this terminal. raw: all it has written.

    bytes_per_second: how fast the terminal takes what the program writes; None for as fast as it comes.
    """

    def __init__(
        self,
        command: Sequence[str],
        size: tuple[int, int] = (120, 40),
        *,
        folder: Path | None = None,
        variables: Mapping[str, str] | None = None,
        stdin: int | None = None,
        bytes_per_second: float | None = None,
        ignored: Sequence[int] = (),
    ) -> None:
        """variables: added to this process's own. stdin: another standard input than the terminal. ignored: signals."""
        self._screen = pyte.Screen(*size)
        self.raw = bytearray()
        self._num_shown = 0  # bytes of `raw` that are on `screen`
        self._stream = pyte.ByteStream(self._screen)
        self._bytes_per_second = bytes_per_second
        self._may_read_at = self._read_at = 0.0
        self.has_ended = False  # nothing more can come
        self._master, slave = pty.openpty()
        self._set_size(size)
        self.started_at = time.monotonic()
        self.process = WarmProcess(
            command,
            takes_terminal=True,
            ignored=ignored,
            cwd=folder,
            env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **(variables or {})},
            stdin=slave if stdin is None else stdin,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)

    def __enter__(self) -> PseudoTerminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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

    def resize(self, columns: int, rows: int) -> None:
        """The window has another size, and the program gets SIGWINCH."""
        self.screen.resize(rows, columns)
        self._set_size((columns, rows))
        os.killpg(self.process.pid, signal.SIGWINCH)

    def local_modes(self) -> int:
        """The flags of c_lflag, as the program and its successor find them."""
        modes: int = termios.tcgetattr(self._master)[3]
        return modes

    def watch(self, seconds: float) -> int:
        """Read what comes for that long; returns how many bytes that were."""
        before, end = len(self.raw), time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._read(min(left, 0.05))
        return len(self.raw) - before

    def num_unread(self) -> int:
        """How many bytes wait to be read here."""
        (number,) = struct.unpack("i", fcntl.ioctl(self._master, termios.FIONREAD, bytes(4)))
        return int(number)

    def click(self, x: int, y: int) -> None:
        """Press and release the left button on that cell."""
        self.press(*(f"\x1b[<0;{x + 1};{y + 1}{end}" for end in "Mm"))

    def press(self, *keys: str) -> None:
        """Send keys by their names, anything else as it is."""
        for key in keys:
            os.write(self._master, KEYS.get(key, key).encode())

    @property
    def screen(self) -> pyte.Screen:
        """The screen; painting it takes longer than reading what came, and is left until it is asked for."""
        self._stream.feed(bytes(self.raw[self._num_shown :]))
        self._num_shown = len(self.raw)
        return self._screen

    def text(self) -> str:
        """What is on the screen."""
        return "\n".join(self.screen.display)

    def show_garbage(self, words: str) -> None:
        """What another program has written to the terminal."""
        _ = self.screen
        self._stream.feed(f"\x1b[H{words}".encode())

    def wait_for(self, pattern: str, seconds: float = DEADLINE_SECONDS, *, absent: bool = False) -> float:
        """`pattern` is on the screen, or off it with `absent`; returns the seconds until the bytes of that were read.

        What this side needs to paint them is not counted. AssertionError past the deadline, or when the program ends
        before.
        """
        start = time.monotonic()
        while bool(re.search(pattern, self.text())) == absent:
            waited = time.monotonic() - start
            words = f"{pattern} {'still there' if absent else 'not there'} after {waited:.0f} s"
            assert waited < seconds, f"{words}\n{self.text()}"
            assert not self.has_ended, f"ended without: {words}\n{self.text()}"
            self._read(0.05)
            while self._bytes_per_second is None and self._read(0.0):  # all of a picture, before it is painted
                pass
        return max(0.0, self._read_at - start)

    def wait_for_bytes(self, words: bytes, seconds: float = DEADLINE_SECONDS) -> float:
        """The program has written these; returns when, in seconds since its start."""
        while words not in self.raw:
            waited = time.monotonic() - self.started_at
            assert waited < seconds, f"{words!r} was not written in {waited:.0f} s"
            self._read(0.01)
        return time.monotonic() - self.started_at

    def wait(self, seconds: float = DEADLINE_SECONDS) -> int:
        """The program's exit status, once all it said was read. AssertionError past the deadline."""
        end = time.monotonic() + seconds
        while self._master >= 0 and not self.has_ended:
            assert time.monotonic() < end, f"still running after {seconds} s\n{self.text()}"
            self._read(0.05)
        return self.process.wait(max(1.0, end - time.monotonic()))

    def _set_size(self, size: tuple[int, int]) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))

    def _read(self, seconds: float) -> bool:
        """Whether anything came within so many seconds."""
        if self._master < 0:
            time.sleep(seconds)
            return False
        most = 65536
        if self._bytes_per_second is not None:  # a packet of a twentieth of a second at a time
            most = max(64, int(self._bytes_per_second / 20))
            time.sleep(max(0.0, min(seconds, self._may_read_at - time.monotonic())))
            if time.monotonic() < self._may_read_at:
                return False
        if not select.select([self._master], [], [], seconds)[0]:
            self.has_ended = self.process.poll() is not None
            return False
        try:
            read = os.read(self._master, most)
        except OSError:  # EIO: the last process has closed the other side
            read = b""
        self.has_ended = not read
        if self._bytes_per_second is not None:
            self._may_read_at = time.monotonic() + len(read) / self._bytes_per_second
        if SYNCHRONIZED_QUERY in read:
            os.write(self._master, SYNCHRONIZED_YES)
        self.raw += read
        self._read_at = time.monotonic()
        return bool(read)
