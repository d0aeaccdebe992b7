"""Where the sockets of runs are, and who may speak on them.

They are in `/tmp/rl-tui-UID`, or in RL_TUI_SOCKET_DIR, a folder of their user alone: not in `/run/user`, which logind
removes at the user's last logout. Each is named after the lock of its run and the process that holds it, so that no
client speaks to the socket that a dead process has left.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import stat
import struct
import time
from pathlib import Path

from rl_tui.engine.errors import AttachError
from rl_tui.engine.process.vital_signs import process_id
from rl_tui.engine.storage.file_names import LOCK
from rl_tui.engine.storage.ownership import writing_process

FOLDER_VARIABLE = "RL_TUI_SOCKET_DIR"
COMING_SECONDS = 2.0  # in which a run that has just begun, or has left its terminal, has a socket
UNFINISHED = "+"  # behind the name of a socket that does not answer yet
LONGEST_PATH = 107 if os.uname().sysname == "Linux" else 103  # bytes of sun_path, less its zero
_LOCAL_PEERCRED, _SOL_LOCAL, _XUCRED_BYTES = 0x001, 0, 76  # of macOS, whose Python does not name them


def socket_folder() -> Path:
    """That of this user; it may not exist."""
    chosen = os.environ.get(FOLDER_VARIABLE)
    return Path(chosen).absolute() if chosen else Path("/tmp", f"rl-tui-{os.getuid()}")  # checked below


def socket_path(run: Path, pid: int) -> Path:
    """Of the run in that folder, whose lock that process holds. Raises AttachError."""
    try:
        lock = os.stat(run / LOCK)
    except OSError as error:
        raise AttachError(f"{run / LOCK}: cannot be read ({error.strerror})") from error
    path = socket_folder() / f"{lock.st_dev:x}-{lock.st_ino:x}-{pid}"
    if len(os.fsencode(path)) + len(UNFINISHED) > LONGEST_PATH:
        raise AttachError(f"{path}: longer than the {LONGEST_PATH} bytes that a socket's path may have")
    return path


class Listener:
    """The socket of the run in that folder, which this process trains. Made again where it has vanished from its place,
    and where the process has another id. socket: at present."""

    def __init__(self, run: Path) -> None:
        """Raises AttachError."""
        self._run = run
        self._path = socket_path(run, process_id())
        self.socket = _listen(self._path)

    def is_at_its_place(self) -> bool:
        """Whether clients find it."""
        return self._path.name.endswith(f"-{process_id()}") and os.path.lexists(self._path)

    def close(self) -> None:
        """Clients find it no more."""
        self.socket.close()
        with contextlib.suppress(OSError):
            self._path.unlink()


def _listen(path: Path) -> socket.socket:
    """A socket there that accepts its user alone. Raises AttachError."""
    _make_private(path.parent)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _sweep(path.parent)
        unfinished = path.with_name(f"{path.name}{UNFINISHED}")
        unfinished.unlink(missing_ok=True)
        listener.bind(os.fspath(unfinished))
        unfinished.chmod(0o600)  # a umask would be that of all threads
        listener.listen()
        unfinished.replace(path)  # once it is there, it answers
    except OSError as error:
        listener.close()
        raise AttachError(f"{path}: no socket can be made there ({error.strerror})") from error
    listener.setblocking(False)
    return listener


def _make_private(folder: Path) -> None:
    """A folder that only its user may enter is there. Raises AttachError."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = os.lstat(folder)
    except OSError as error:
        raise AttachError(f"{folder}: cannot be made ({error.strerror})") from error
    if not stat.S_ISDIR(found.st_mode):
        raise AttachError(f"{folder}: must be a folder, not a link or a file")
    if found.st_uid != os.getuid():
        raise AttachError(f"{folder}: belongs to another user; {FOLDER_VARIABLE} names another folder")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise AttachError(f"{folder}: others may enter it; chmod 700 {folder}")


def _sweep(folder: Path) -> None:
    """Remove the sockets of processes that are gone."""
    for name in os.listdir(folder):
        pid = name.rpartition("-")[2]
        if not pid.isdecimal() or not stat.S_ISSOCK(os.lstat(folder / name).st_mode):
            continue
        try:
            os.kill(int(pid), 0)
        except (ProcessLookupError, OverflowError):
            (folder / name).unlink(missing_ok=True)
        except PermissionError:
            pass  # another user's, who cannot have made it


def connect(run: Path) -> socket.socket:
    """A connection to the process that trains in that folder. Raises AttachError where there is none."""
    process = writing_process(run)
    if process is None:
        raise AttachError(f"{run}: no process trains it now")
    match = re.fullmatch(r"pid ([0-9]+) on (.*)", process)
    if match is None:
        raise AttachError(f"{run}: {process} trains it, which cannot be reached from here")
    if match[2] != os.uname().nodename:
        raise AttachError(f"{run}: {process} trains it; from there: ssh {match[2]} -t rl-tui attach {run}")
    path = socket_path(run, int(match[1]))
    deadline = time.monotonic() + COMING_SECONDS
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(COMING_SECONDS)
        try:
            _require_private(path)
            connection.connect(os.fspath(path))
            break
        except OSError as error:
            connection.close()
            if not isinstance(error, FileNotFoundError) or time.monotonic() > deadline:
                why = error.strerror or str(error)
                is_missing = isinstance(error, FileNotFoundError)
                hint = f"; does it have another {FOLDER_VARIABLE}? Its log says where it has no socket" * is_missing
                raise AttachError(f"{run}: {process} trains it, but does not answer at {path} ({why}){hint}") from error
        time.sleep(COMING_SECONDS / 100)
    if peer_of(connection) != os.getuid():
        connection.close()
        raise AttachError(f"{path}: another user answers there")
    return connection


def _require_private(path: Path) -> None:
    """It is a socket of this user. Raises OSError."""
    found = os.lstat(path)
    if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(0, "it is not a socket of this user")


def peer_of(connection: socket.socket) -> int | None:
    """The user id at the other end, as the kernel knows it; None where it does not."""
    try:
        if hasattr(socket, "SO_PEERCRED"):
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            return int(struct.unpack("3i", credentials)[1])
        credentials = connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED_BYTES)
        return int(struct.unpack_from("2I", credentials)[1])
    except (OSError, struct.error):
        return None
