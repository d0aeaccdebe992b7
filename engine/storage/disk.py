"""Files and folders that survive a killed process and a power failure.

Nothing is durable before its `sync`: a file's content before its own, a name before that of its folder.
A name that starts with UNFINISHED belongs to unpublished work; the next writer may remove it.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from rl_tui.engine.process.files import open_regular

UNFINISHED = ".tmp-"
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)


class Disk:
    """The calls that change a disk, one method each, so that a test can record them, make them fail or stop at one."""

    def make_folder(self, path: Path) -> None:
        """Create one folder; its parent exists."""
        os.mkdir(path)

    def write(self, path: Path, content: bytes) -> None:
        """Create a file with that content. Raises FileExistsError for an existing name, also a link."""
        _write(path, os.O_CREAT | os.O_EXCL, memoryview(content))

    def append(self, path: Path, content: memoryview) -> None:
        """Append these bytes to the file."""
        _write(path, os.O_APPEND, content)

    def sync(self, path: Path) -> None:
        """Force the content of a file, or the names in a folder, onto the medium."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
            if _FULL_SYNC is not None:  # pragma: no cover - macOS, where fsync alone ends in the drive's cache
                with suppress(OSError):  # network volumes do not support it
                    fcntl.fcntl(descriptor, _FULL_SYNC)
        finally:
            os.close(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        """Rename atomically; a file named `target` is replaced."""
        os.rename(source, target)

    def unlink(self, path: Path) -> None:
        """Remove a file or a link, never its target."""
        os.unlink(path)

    def remove_folder(self, path: Path) -> None:
        """Remove an empty folder."""
        os.rmdir(path)


DISK = Disk()


def _write(path: Path, flags: int, content: memoryview) -> None:
    descriptor = open_regular(path, os.O_WRONLY | flags)
    try:
        while content:
            content = content[os.write(descriptor, content) :]
    finally:
        os.close(descriptor)


def make_folders(path: Path, disk: Disk = DISK) -> None:
    """Create the folder and its missing parents durably. Raises FileExistsError where one of them is a file."""
    if path.is_dir():
        with suppress(PermissionError):  # the folder above a user's own is not always readable
            disk.sync(path.parent)  # the process that created this one may have been killed before its sync
        return
    make_folders(path.parent, disk)
    try:
        disk.make_folder(path)
    except FileExistsError:
        if not path.is_dir():  # otherwise another thread of this run was faster
            raise
    disk.sync(path.parent)


def remove_tree(path: Path, disk: Disk = DISK) -> None:
    """Remove `path` and everything in it, if it exists; links are removed, never followed."""
    if path.is_symlink() or not path.is_dir():
        with suppress(FileNotFoundError):
            disk.unlink(path)
        return
    for entry in sorted(path.iterdir()):
        remove_tree(entry, disk)
    disk.remove_folder(path)


def write_atomically(path: Path, content: bytes, disk: Disk = DISK) -> None:
    """Replace the content of `path` durably and atomically: a crash leaves all of the old content or all of the new.

    One writer per path. Raises OSError; the file is then unchanged.
    """
    unfinished = path.with_name(UNFINISHED + path.name)
    remove_tree(unfinished, disk)
    try:
        disk.write(unfinished, content)
        disk.sync(unfinished)
        disk.rename(unfinished, path)
    except OSError:
        with suppress(OSError):
            remove_tree(unfinished, disk)
        raise
    disk.sync(path.parent)
