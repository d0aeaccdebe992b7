"""Removing the folder of a run, which must be a run of rl-tui that nobody is writing to."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from rl_tui.engine.errors import ConfigError, RunBusyError
from rl_tui.engine.session.summaries import Removal
from rl_tui.engine.storage.disk import DISK, Disk, remove_tree
from rl_tui.engine.storage.file_names import CHECKPOINTS, CONFIGURATION, EVENTS, LOCK, MANIFEST
from rl_tui.engine.storage.ownership import foreign_text, owner_of, writing_process

LAST = (CONFIGURATION, EVENTS, LOCK)  # so that a folder that was removed by half is still a run that can be removed


def survey(folder: Path) -> Removal:
    """What removing that run would remove. Raises ConfigError where it is none of ours, RunBusyError while it is open.

    Links are counted as what they are, not as what they lead to.
    """
    try:
        _require_removable(folder)
        num_bytes = sum(
            os.lstat(os.path.join(where, name)).st_size for where, _, names in os.walk(folder) for name in names
        )
    except OSError as error:
        raise _unremovable(folder, error) from error
    checkpoints = sum(1 for _ in folder.glob(f"*/{CHECKPOINTS}*/*/{MANIFEST}"))
    return Removal(str(folder.absolute()), num_bytes, checkpoints)


def remove(folder: Path, disk: Disk = DISK) -> None:
    """The run's folder is gone with everything in it; nothing outside of it is touched, links are not followed.

    It is locked meanwhile, so that no run begins in it. Raises as `survey` does; what is left can be removed again.
    """
    try:
        _require_removable(folder)
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for entry in sorted(folder.iterdir(), key=lambda entry: (entry.name in LAST, entry.name)):
                remove_tree(entry, disk)
            disk.remove_folder(folder)
        finally:
            os.close(lock)
    except BlockingIOError as error:
        raise RunBusyError(f"{folder}: a process has just begun to write to this run. Nothing was removed.") from error
    except OSError as error:
        raise _unremovable(folder, error) from error


def _require_removable(folder: Path) -> None:
    if folder.is_symlink():
        raise ConfigError(f"{folder}: a link, expected a run's own folder. Nothing was removed.")
    process = writing_process(folder)
    if process is not None:
        raise RunBusyError(f"{folder}: process {process} is writing to this run. Nothing was removed.")
    owner = owner_of(folder)
    if owner == "nobody":
        raise ConfigError(f"{folder}: there is no run. Nothing was removed.")
    if owner != "rl-tui":
        raise ConfigError(f"{foreign_text(folder, owner)}. Nothing was removed.")


def _unremovable(folder: Path, error: OSError) -> ConfigError:
    where = os.fsdecode(error.filename) if error.filename else folder
    return ConfigError(f"{where}: cannot be removed ({error.strerror})")
