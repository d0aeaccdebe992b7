"""The process's output without a screen: our lines keep the streams, everything else goes to the run's log."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import TextIO

from rl_tui.engine.process.printing import redirect_descriptors, redirect_printing
from rl_tui.tui.terminal.streams import complain


class OwnOutput:
    """While entered, `stdout` and `stderr` are what the process was started with, for our own lines only.

    What environments and libraries write to file descriptors 1 and 2, also from C and from child processes, is kept:
    in a file without a name, and in the run's log once that is known. What no lasting log has, since the run could not
    start, is on stderr afterwards. Used by the main thread.

    num_shown: how many lines of that at most, the last ones; None for all.
    """

    stdout: TextIO
    stderr: TextIO

    def __init__(self, num_shown: int | None = None) -> None:
        self._num_shown = num_shown

    def __enter__(self) -> OwnOutput:
        self._former = sys.stdout, sys.stderr
        self.stdout, self.stderr = _own(sys.stdout, 1), _own(sys.stderr, 2)
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
            complain(self._shown(printed.decode(errors="replace").rstrip("\n")))
        os.close(self._log)

    def keep_in(self, path: Path) -> None:
        """From now on output is appended to that file, after what there was so far, if its folder is there."""
        try:
            log = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except FileNotFoundError:
            return  # with the folder of a run that could not start: what was printed is shown at the end
        except OSError as error:
            complain(f"{path}: not written ({error.strerror}); what is printed is shown at the end", self.stderr)
            return
        former, self._log = self._log, log
        redirect_descriptors(log)
        with contextlib.suppress(OSError):  # a full disk: nothing that was printed is worth the run
            os.write(self._log, _content(former))
        os.close(former)

    def _shown(self, printed: str) -> str:
        lines = printed.split("\n")
        if self._num_shown is None:
            return printed
        last = f", the last {self._num_shown} of them" if len(lines) > self._num_shown else ""
        counted = f"{len(lines)} line{'s' if len(lines) > 1 else ''}"
        return "\n".join([f"the environment printed {counted}{last}:", *lines[-self._num_shown :]])


def _own(stream: TextIO, descriptor: int) -> TextIO:
    """A stream of our own on what the descriptor leads to now."""
    return os.fdopen(os.dup(descriptor), "w", encoding=stream.encoding, errors=stream.errors)


def _content(file: int) -> bytes:
    return os.pread(file, os.fstat(file).st_size, 0)
