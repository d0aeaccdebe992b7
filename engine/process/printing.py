"""What environments and libraries print, which is worth no run: where it cannot be written, it is lost."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _LossyFile(io.FileIO):
    def write(self, content: ReadableBuffer, /) -> int:
        try:
            return super().write(content)
        except OSError:  # a full disk: a print that raised would end the environment that printed
            return memoryview(content).nbytes


def lossy_stream(descriptor: int, like: TextIO) -> TextIO:
    """A stream in the encoding of `like` that writes each line to the descriptor, and never raises OSError.

    The descriptor stays its owner's.
    """
    file = io.BufferedWriter(_LossyFile(descriptor, "w", closefd=False))
    # Line by line, since what was printed last matters most where a process dies.
    return io.TextIOWrapper(file, like.encoding, like.errors, line_buffering=True)


def open_log(path: Path) -> int:
    """A descriptor that appends to the file, made where it is new. Raises OSError."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)


def print_into(log: int) -> None:
    """File descriptors 1 and 2, and what is printed, lead to the same file as the descriptor `log`."""
    sys.stdout.flush()
    sys.stderr.flush()
    lead_into(log)
    sys.stdout, sys.stderr = lossy_stream(1, sys.stdout), lossy_stream(2, sys.stderr)


def lead_into(log: int) -> None:
    """The descriptors alone: streams on them, made by `print_into`, follow."""
    os.dup2(log, 1)
    os.dup2(log, 2)
