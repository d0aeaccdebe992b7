"""The process's output without a screen: our lines go to the streams, everything else to the run's log."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import TextIO

from rl_tui.engine.process.files import open_regular
from rl_tui.engine.process.printing import redirect_descriptors, redirect_printing
from rl_tui.tui.terminal.streams import write_stderr


class CapturedOutput:
    """While entered, `stdout` and `stderr` are the streams the process was started with, for our own lines only.

    What environments and libraries write to file descriptors 1 and 2, also from C and from child processes, goes to
    a temporary file, and to the run's log once that is known. If there never is a log, it is on stderr afterwards. Used
    by the main thread.

    num_shown: at most that many lines of it, the last ones; None for all.
    """

    stdout: TextIO
    stderr: TextIO

    def __init__(self, num_shown: int | None = None) -> None:
        self._num_shown = num_shown

    def __enter__(self) -> CapturedOutput:
        self._former = sys.stdout, sys.stderr
        self.stdout, self.stderr = _duplicate(sys.stdout, 1), _duplicate(sys.stderr, 2)
        with tempfile.TemporaryFile() as file:
            self._log = os.dup(file.fileno())
        redirect_printing(self._log)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = self._former
        os.dup2(self.stdout.fileno(), 1)
        os.dup2(self.stderr.fileno(), 2)
        self.stdout.close()
        self.stderr.close()
        printed = _content(self._log) if os.fstat(self._log).st_nlink == 0 else b""
        if printed:
            write_stderr(self._shown(printed.decode(errors="replace").rstrip("\n")))
        os.close(self._log)

    def save_to(self, path: Path) -> None:
        """Append the output so far, and from now on, to that file, if its folder exists."""
        try:
            log = open_regular(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        except FileNotFoundError:
            return  # the run could not start and removed its folder: the output is shown at the end
        except OSError as error:
            write_stderr(f"{path}: cannot be written ({error.strerror}); output is shown at the end", self.stderr)
            return
        former, self._log = self._log, log
        redirect_descriptors(log)
        with contextlib.suppress(OSError):  # a full disk must not end the run
            os.write(self._log, _content(former))
        os.close(former)

    def _shown(self, printed: str) -> str:
        lines = printed.split("\n")
        if self._num_shown is None:
            return printed
        last = f", the last {self._num_shown} of them" if len(lines) > self._num_shown else ""
        counted = f"{len(lines)} line{'s' if len(lines) > 1 else ''}"
        return "\n".join([f"the environment printed {counted}{last}:", *lines[-self._num_shown :]])


def _duplicate(stream: TextIO, descriptor: int) -> TextIO:
    """A new stream to where the descriptor leads now."""
    return os.fdopen(os.dup(descriptor), "w", encoding=stream.encoding, errors=stream.errors)


def _content(file: int) -> bytes:
    return os.pread(file, os.fstat(file).st_size, 0)
