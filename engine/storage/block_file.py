"""A file that grows by whole blocks: it never ends in a partial one, even after the disk was full."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

from rl_tui.engine.process.files import open_regular


class BlockFile:
    """Appends blocks of bytes, each whole or not at all. Used by one thread. Owns the file at `path`.

    The first block creates the file and its folder; without `append` an existing file is emptied.
    failed: why the first lost block could not be written, None if none was lost. Later blocks are still tried, since
    space may be freed.
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
        """Append the block; after an error the file has its previous size."""
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
        """Close the file, if it was opened."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> io.FileIO:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = io.FileIO(self.path, self._mode, opener=open_regular)
        self._size = file.seek(0, io.SEEK_END)
        return file

    def _cut_back(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # a disk that refused the block may refuse this, too
                self._file.truncate(self._size)
                self._file.seek(self._size)
