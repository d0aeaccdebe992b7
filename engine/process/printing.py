"""Where this process prints. No run fails over it: what cannot be written is lost."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from rl_tui.engine.process.files import open_regular

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _LossyFile(io.FileIO):
    def write(self, content: ReadableBuffer, /) -> int:
        try:
            return super().write(content)
        except OSError:  # a full disk: a print that raised would end the environment that printed
            return memoryview(content).nbytes


def lossy_stream(descriptor: int, like: TextIO) -> TextIO:
    """A stream in the encoding of `like` that writes each line to the descriptor and never raises OSError.

    It does not close the descriptor.
    """
    file = io.BufferedWriter(_LossyFile(descriptor, "w", closefd=False))
    # Line by line: what was printed last matters most when a process dies.
    return io.TextIOWrapper(file, like.encoding, like.errors, line_buffering=True)


def open_log(path: Path) -> int:
    """A descriptor that appends to the file, which is created if needed. Raises OSError."""
    return open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def redirect_printing(log: int) -> None:
    """Print to `log` from now on, through file descriptors 1 and 2."""
    sys.stdout.flush()
    sys.stderr.flush()
    redirect_descriptors(log)
    sys.stdout, sys.stderr = lossy_stream(1, sys.stdout), lossy_stream(2, sys.stderr)


def redirect_descriptors(log: int) -> None:
    """Point file descriptors 1 and 2, and so the streams that `redirect_printing` made, at `log`."""
    os.dup2(log, 1)
    os.dup2(log, 2)
