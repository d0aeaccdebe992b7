"""Files in places where anyone may have put something else: a named pipe makes who opens it wait for its other end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def open_regular(path: str | Path, flags: int = os.O_RDONLY, *, follows_links: bool = False) -> int:
    """A descriptor of a regular file, at once; can be the `opener` of `open`. Raises OSError for anything else."""
    wanted = (flags & ~os.O_TRUNC) | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follows_links else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, wanted, 0o666)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a pipe without a reader, or a socket
            raise OSError(error.errno, "not a regular file", os.fspath(path)) from None
        if error.errno == errno.ELOOP and not follows_links:
            raise OSError(error.errno, "a link, which is not followed", os.fspath(path)) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    if flags & os.O_TRUNC:
        os.ftruncate(descriptor, 0)
    return descriptor


def require_regular(path: Path, *, follows_links: bool = False) -> None:
    """Before a library opens it. Raises OSError as `open_regular` does."""
    os.close(open_regular(path, follows_links=follows_links))
