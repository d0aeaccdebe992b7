"""Which program's files are in a folder, and which process writes to them. Nothing is changed."""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from pathlib import Path
from typing import Literal, TypeAlias

from rl_tui.engine.process.files import open_regular
from rl_tui.engine.process.vital_signs import this_process
from rl_tui.engine.storage.disk import UNFINISHED
from rl_tui.engine.storage.file_names import (
    CHECKPOINTS,
    CONFIGURATION,
    EVENTS,
    LOCK,
    MANIFEST,
    RUN_LOGS,
    TRAINING_STATUS,
)

Owner: TypeAlias = Literal["none", "rl-tui", "ML-Agents", "other"]

_FIRST_EVENT = b'{"v": '
_SUMMARY = b'"event": "MetricsReported"'
_FIRST_SETTING = b"default_settings:"  # every configuration.yaml starts so, ML-Agents' too
_STATUS_BYTES = 1 << 20
ENDING_SECONDS = 5.0  # for the kernel to end a process and give back its memory
LOCK_BYTES = 256  # for a process id and a host name
_NAMED_FILES = 3  # in the message about a folder of another program: enough to recognize it


def owner_of(folder: Path) -> Owner:
    """The program that wrote the folder: "none" if it is missing or empty, "other" if it is no run. Raises OSError."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return "none"
    if not names:
        return "none"
    if _has_status_of_ml_agents(folder):  # it may have trained where rl-tui trained before
        return "ML-Agents"
    if _is_own(folder, names):
        return "rl-tui"
    return "ML-Agents" if any(folder.glob("*/*.pt")) else "other"


def foreign_text(folder: Path, owner: Owner) -> str:
    """What is in a folder that is not rl-tui's, for a message."""
    if owner == "ML-Agents":
        return f"{folder} holds a run of ML-Agents, whose checkpoints rl-tui cannot read"
    names = sorted(os.listdir(folder))
    listed = ", ".join(names[:_NAMED_FILES]) + (", ..." if len(names) > _NAMED_FILES else "")
    return f"{folder} holds other files than those of a run of rl-tui ({listed})"


def has_begun(folder: Path) -> bool:
    """Whether a run has left anything in the folder besides its lock and its logs."""
    is_written = any(os.path.lexists(folder / name) for name in (CONFIGURATION, EVENTS))
    return is_written or any(folder.glob(f"*/{CHECKPOINTS}/[!.]*"))


def has_learned(folder: Path) -> bool:
    """Whether the folder's run left anything that a new one would replace: a checkpoint, a policy, a summary."""
    patterns = (f"*/{CHECKPOINTS}*/[!.]*", "[!.]*.onnx", "*/[!.]*.onnx")
    if any(entry for pattern in patterns for entry in folder.glob(pattern)):
        return True
    descriptor = _open(folder / EVENTS)
    if descriptor is None:
        return False
    with open(descriptor, "rb") as file:  # a file without an early summary is short
        return any(_SUMMARY in line for line in file)


def writing_process(run: Path) -> str | None:
    """The process that writes to the run in that folder, as `process_in` returns it; None without one.

    The lock is tried, not only read: the kernel releases it however its process ends.
    """
    try:
        descriptor = open_regular(run / LOCK)
    except OSError:
        return None  # never locked by this program
    try:
        return None if take_lock(descriptor, fcntl.LOCK_SH) else process_in(descriptor)
    except OSError:  # a file system without locks
        return None
    finally:
        os.close(descriptor)


def take_lock(descriptor: int, kind: int) -> bool:
    """Whether the lock could be taken. Raises OSError.

    Where its process was just killed, the kernel may still be about to end the other one that this one has watched.
    """
    deadline = time.monotonic() + ENDING_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline or not _has_ended(process_in(descriptor)):
                return False
            time.sleep(ENDING_SECONDS / 1000)
        else:
            return True


def sign(descriptor: int) -> None:
    """This process holds the lock of that descriptor. Raises OSError."""
    name = f"{this_process()}\n".encode("ascii", "replace")
    os.pwrite(descriptor, name.ljust(os.fstat(descriptor).st_size), 0)  # in one call: others may be reading it
    os.ftruncate(descriptor, len(name))


def sign_again(run: Path) -> None:
    """The same for the run in that folder, whose process has another id now. Raises OSError."""
    descriptor = open_regular(run / LOCK, os.O_RDWR)
    try:
        sign(descriptor)
    finally:
        os.close(descriptor)


def _has_ended(process: str) -> bool:
    """Whether a process of this machine is gone, named as `process_in` does."""
    match = re.fullmatch(r"pid ([0-9]+) on (.*)", process)
    if match is None or match[2] != os.uname().nodename:
        return False
    try:
        os.kill(int(match[1]), 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        return False
    return False


def process_in(descriptor: int) -> str:
    """The process that holds the lock of that descriptor, as "pid 123 on host", or as much as it has written."""
    content = os.pread(descriptor, LOCK_BYTES, 0).decode("ascii", "replace").strip()
    return f"pid {content}" if content.isdecimal() else content or "pid unknown"


def _is_own(folder: Path, names: list[str]) -> bool:
    """Whether there are events or a checkpoint, or only the lock of a run and what it writes next."""
    if _head(folder / EVENTS, len(_FIRST_EVENT)) == _FIRST_EVENT or any(folder.glob(f"*/{CHECKPOINTS}*/*/{MANIFEST}")):
        return True
    process = _head(folder / LOCK, LOCK_BYTES)
    if process is None or not re.fullmatch(rb"((pid )?[0-9]+( on [^\n]*)?\n?)?", process):
        return False
    if _head(folder / CONFIGURATION, len(_FIRST_SETTING)) == _FIRST_SETTING:
        return True
    return all(name in (LOCK, RUN_LOGS, EVENTS) or name.startswith(UNFINISHED) for name in names)


def _has_status_of_ml_agents(folder: Path) -> bool:
    try:
        return (
            "mlagents_version"
            in json.loads(_head(folder / RUN_LOGS / TRAINING_STATUS, _STATUS_BYTES) or b"")["metadata"]
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


def _head(path: Path, length: int) -> bytes | None:
    """The first bytes of a file; None without one."""
    descriptor = _open(path)
    if descriptor is None:
        return None
    with open(descriptor, "rb") as file:
        return file.read(length)


def _open(path: Path) -> int | None:
    """A descriptor of the file; None when it cannot be read or is not a regular file."""
    try:
        return open_regular(path)
    except OSError:
        return None
