"""Files and folders that outlive a killed process and a power cut.

Nothing is certain before its `sync`: a file's content before its own, a name before that of the folder it stands in.
A name that starts with UNFINISHED belongs to work that nobody has promised yet; its next owner may remove it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path

UNFINISHED = ".tmp-"
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)


class Disk:
    """The calls that change a disk, one method each, so that a test can record them, refuse them or stop at one."""

    def make_folder(self, path: Path) -> None:
        """One new folder; its parent exists."""
        os.mkdir(path)

    def write(self, path: Path, content: bytes) -> None:
        """A new file with that content; a name that is taken, a link included, raises FileExistsError."""
        _write(path, os.O_CREAT | os.O_EXCL, memoryview(content))

    def append(self, path: Path, content: memoryview) -> None:
        """The file has these bytes at its end."""
        _write(path, os.O_APPEND, content)

    def sync(self, path: Path) -> None:
        """The content of a file, or the names in a folder, are on the medium."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
            if _FULL_SYNC is not None:  # pragma: no cover - macOS, where fsync alone ends in the drive's cache
                with suppress(OSError):  # network volumes do not know it
                    fcntl.fcntl(descriptor, _FULL_SYNC)
        finally:
            os.close(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        """`source` is called `target`, in one step; a file of that name is replaced."""
        os.rename(source, target)

    def unlink(self, path: Path) -> None:
        """A file, or a link but not what it points to, is gone."""
        os.unlink(path)

    def remove_folder(self, path: Path) -> None:
        """An empty folder is gone."""
        os.rmdir(path)


DISK = Disk()


def _write(path: Path, flags: int, content: memoryview) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o666)
    try:
        while content:
            content = content[os.write(descriptor, content) :]
    finally:
        os.close(descriptor)


def open_regular(path: Path, *, follows_links: bool) -> int:
    """A descriptor to read a regular file by; a pipe in its place would hold up its reader. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follows_links else os.O_NOFOLLOW))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a file")
    return descriptor


def make_folders(path: Path, disk: Disk = DISK) -> None:
    """`path` is a folder, and its own name and that of every parent made here are on the medium.

    Raises FileExistsError where a file stands in the way.
    """
    if path.is_dir():
        with suppress(PermissionError):  # the folder above a user's own is not always readable
            disk.sync(path.parent)  # whoever made this one may have been killed before this
        return
    make_folders(path.parent, disk)
    try:
        disk.make_folder(path)
    except FileExistsError:
        if not path.is_dir():  # otherwise another thread of this run was quicker
            raise
    disk.sync(path.parent)


def remove_tree(path: Path, disk: Disk = DISK) -> None:
    """`path` and everything in it is gone; links are removed, never followed. Harmless when nothing is there."""
    if path.is_symlink() or not path.is_dir():
        with suppress(FileNotFoundError):
            disk.unlink(path)
        return
    for entry in sorted(path.iterdir()):
        remove_tree(entry, disk)
    disk.remove_folder(path)


def write_atomically(path: Path, content: bytes, disk: Disk = DISK) -> None:
    """`path` holds `content` on the medium; at every moment before it held all of what it held, or nothing.

    One writer per path. Raises OSError; the file at `path` is then as it was.
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
