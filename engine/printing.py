"""What environments and libraries print, which is worth no run: where it cannot be written, it is lost."""

from __future__ import annotations

import io
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
