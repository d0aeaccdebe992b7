"""A file that grows by whole blocks: what its readers see never ends in half of one, even after the disk was full."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path


class BlockFile:
    """Appends blocks of bytes, each of them whole or not at all. Used by one thread. Owns the file at `path`.

    The file and its folder are made with the first block; with `append` what stands there stays, else it is emptied.
    failed: why the first block that was lost could not be written; None while all is well. Every further block is tried
    again, because space may return.
    """

    def __init__(self, path: Path, *, append: bool):
        self.path = path
        self.failed: str | None = None
        self._mode = "a" if append else "w"
        self._file: io.FileIO | None = None
        self._size = 0

    @property
    def is_open(self) -> bool:
        """Whether the file has been opened for writing."""
        return self._file is not None

    def write(self, block: bytes) -> None:
        """Append the block; after an error the file ends where it ended before."""
        try:
            if self._file is None:
                self._file = self._open()
            rest = memoryview(block)
            while rest:
                rest = rest[self._file.write(rest) or 0 :]
            self._size += len(block)
        except OSError as error:
            if self.failed is None:
                self.failed = f"{self.path}: {error.strerror or error}"
            self._cut_back()

    def close(self) -> None:
        """Close the file; harmless when it never opened."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> io.FileIO:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = io.FileIO(self.path, self._mode)
        self._size = file.seek(0, io.SEEK_END)
        return file

    def _cut_back(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # a device has no end to go back to
                self._file.truncate(self._size)
                self._file.seek(self._size)
