"""Limits of the logs in run_logs: what environments print and raise has no other end than the disk's."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from rl_tui.engine.process.files import open_regular

LARGEST_LOG = 100_000_000  # bytes
MESSAGES = "messages.log"
_BLOCK_BYTES = 1 << 16


class LogLimits:
    """Used by the thread that writes the run's files, except for `keep_whole`. Owns the full logs, NAME.log.1."""

    def __init__(self, folder: Path, log: Callable[[str], None], largest: int = LARGEST_LOG):
        """folder: run_logs. log: for a line about each log that was full. largest: in bytes."""
        self._folder, self._log, self._largest = folder, log, largest

    def check(self) -> None:
        """Logs that are full are emptied; what one held is in NAME.log.1, instead of what was there."""
        for pattern in ("*.log", "*.out"):
            for path in self._folder.glob(pattern):
                self._check(path)

    def keep_whole(self, text: str) -> str:
        """Append the text to messages.log; returns that file's path, or "" if it was not written. Any thread."""
        path = self._folder / MESSAGES
        try:
            with open(path, "a", encoding="utf-8", errors="backslashreplace", opener=open_regular) as file:
                file.write(text + "\n")
        except OSError:
            return ""
        return str(path)

    def _check(self, path: Path) -> None:
        """Copied and emptied, not renamed: other processes write to it, and would follow the name's file.

        One that does not append, as Unity, goes on where it was: the log then begins with zeros, which need no room.
        """
        try:
            if _size_on_disk(path) <= self._largest:
                return
            full = path.with_name(f"{path.name}.1")
            with (
                open(path, "r+b", opener=open_regular) as source,
                open(full, "wb", opener=open_regular) as target,
            ):
                if _skip_zeros(source) < self._largest // 2:
                    raise OSError(errno.EOPNOTSUPP, "on its file system zeros need room")
                shutil.copyfileobj(source, target)
                os.ftruncate(source.fileno(), 0)
        except OSError as error:
            self._log(f"{path}: larger than {self._largest // 10**6} MB, and cannot be emptied ({error.strerror})")
            self._largest *= 2  # not once a second
        else:
            self._log(f"{path}: full at {self._largest // 10**6} MB and emptied; what it held is in {full.name}")


def _size_on_disk(path: Path) -> int:
    found = path.lstat()
    return min(found.st_size, 512 * found.st_blocks)


def _skip_zeros(file: BinaryIO) -> int:
    """Go to the first byte that is none; how many bytes there are from there on."""
    file.seek(0, os.SEEK_DATA)
    while (block := file.read(_BLOCK_BYTES)) and not block.strip(b"\0"):  # NFS may not know
        pass
    end = os.fstat(file.fileno()).st_size
    return end - file.seek(-len(block.lstrip(b"\0")), os.SEEK_CUR)
