"""The runs in a results folder: listed, found by name, read and removed."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rl_tui.engine.errors import ConfigError, RunBusyError
from rl_tui.engine.process.files import open_regular
from rl_tui.engine.session.summaries import Removal, RunSummary
from rl_tui.engine.storage.disk import DISK, Disk, remove_tree
from rl_tui.engine.storage.file_names import CHECKPOINTS, CONFIGURATION, EVENTS, LOCK, MANIFEST
from rl_tui.engine.storage.ownership import foreign_text, owner_of, writing_process
from rl_tui.engine.storage.run_summary import RUN_FILES, summarize

if TYPE_CHECKING:
    from rl_tui.engine.session.log_position import LogPosition
    from rl_tui.engine.session.messages import Envelope

REMOVED_LAST = (CONFIGURATION, EVENTS, LOCK)  # a half-removed folder is then still a run that can be removed


class Archive:
    """Reads the runs below `results_dir`, also running ones. Keeps no file open; only `remove` changes anything.

    A run is named by its id, by the path of its folder, or by the path of any events file.
    """

    def __init__(self, results_dir: Path, disk: Disk = DISK):
        self.results_dir = results_dir
        self._disk = disk

    def runs(self) -> list[RunSummary]:
        """Every run, the one with the newest event first; none where the folder does not exist.

        Raises ConfigError when the folder exists and cannot be read.
        """
        try:
            names = os.listdir(self.results_dir)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ConfigError(f"{self.results_dir}: cannot be read ({error.strerror})") from error
        summaries = [summary for name in sorted(names) if (summary := summarize(self.results_dir / name)) is not None]
        return sorted(summaries, key=_changed_at, reverse=True)

    def resolve(self, name: str) -> Path:
        """The run's folder, or the events file that was named. Raises ConfigError with the most similar name."""
        for path in (self.results_dir / name, Path(name)):
            if os.path.isfile(path) or any(os.path.isfile(path / file) for file in RUN_FILES):
                return path
        if os.path.isdir(name):
            raise ConfigError(f"{name}: no run in this folder: it has no {EVENTS}")
        from rl_tui.engine.config.diagnostics import suggest  # takes 20 ms; a list of runs does not need it

        known = [run.run_id for run in self.runs()]
        where = f"no such run in {self.results_dir}, and no such path."
        raise ConfigError(f"{name}: {where}{suggest(name, known) or ' `rl-tui ls` lists the runs'}")

    def events(self, name: str) -> Iterator[Envelope]:
        """Every event of the run, oldest first. Raises ConfigError at the line that cannot be read."""
        for envelope in self.follow(name):
            if envelope is None:
                return
            yield envelope

    def follow(self, name: str, position: LogPosition | None = None) -> Iterator[Envelope | None]:
        """Every event of the run, and None while there is no further one; never ends. Raises as `events` does.

        position: where to start; updated after every event.
        """
        from rl_tui.engine.storage.event_log import follow_events

        path = self._file(name, EVENTS)
        try:
            yield from follow_events(path, position)
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
        except ValueError as error:
            raise ConfigError(str(error)) from error

    def process(self, name: str) -> str:
        """The process that writes to the run, as "pid 123 on host"; "" without one. Raises ConfigError."""
        path = self.resolve(name)
        return writing_process(path.parent if path.is_file() else path) or ""

    def configuration(self, name: str) -> str:
        """The effective configuration that the run was started with, as YAML. Raises ConfigError."""
        path = self._file(name, CONFIGURATION)
        try:
            with open(path, encoding="utf-8", opener=partial(open_regular, follows_links=True)) as file:
                return file.read()
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
        except UnicodeDecodeError as error:
            raise ConfigError(f"{path}: must be UTF-8 text ({error.reason} at byte {error.start})") from error

    def preview_removal(self, name: str) -> Removal:
        """What `remove` would delete; the target of a link is not counted. Raises as `remove` does."""
        folder = self.results_dir / name
        try:
            _require_removable(folder)
            num_bytes = sum(
                os.lstat(os.path.join(where, name)).st_size for where, _, names in os.walk(folder) for name in names
            )
        except OSError as error:
            raise _removal_error(folder, error) from error
        checkpoints = sum(1 for _ in folder.glob(f"*/{CHECKPOINTS}*/*/{MANIFEST}"))
        return Removal(str(folder.absolute()), num_bytes, checkpoints)

    def remove(self, name: str) -> None:
        """Delete the run's folder; links are not followed. It is locked meanwhile, so that no run starts in it.

        Raises ConfigError when it is not a run of rl-tui or cannot be deleted (what is left can be removed again),
        RunBusyError while a process writes to it.
        """
        folder = self.results_dir / name
        try:
            _require_removable(folder)
            lock = open_regular(folder / LOCK, os.O_RDWR | os.O_CREAT)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                for entry in sorted(folder.iterdir(), key=lambda entry: (entry.name in REMOVED_LAST, entry.name)):
                    remove_tree(entry, self._disk)
                self._disk.remove_folder(folder)
            finally:
                os.close(lock)
        except BlockingIOError as error:
            raise RunBusyError(
                f"{folder}: a process has just started to write to this run. Nothing was removed"
            ) from error
        except OSError as error:
            raise _removal_error(folder, error) from error

    def resume_command(self, name: str) -> tuple[str, ...]:
        """The arguments with which rl-tui resumes the run. Raises RlTuiError where it would refuse to."""
        from rl_tui.engine.storage.run_folder import RunFolder

        configuration = self._file(name, CONFIGURATION)
        RunFolder(self.results_dir, name).require_startable(resume=True, force=False)
        return (str(configuration), "--run-id", name, "--results-dir", str(self.results_dir), "--resume")

    def evaluate_command(self, name: str) -> tuple[str, ...]:
        """The arguments with which rl-tui evaluates the run. Raises RlTuiError when there is no such run."""
        return ("evaluate", str(self.resolve(name)))

    def _file(self, name: str, file: str) -> Path:
        path = self.resolve(name)
        if path.is_file():
            path = path if file == EVENTS else path.parent / file
        else:
            path /= file
        if not path.is_file():  # opening a named pipe would block
            raise ConfigError(f"{path}: there is no such file")
        return path


def _changed_at(summary: RunSummary) -> float:
    """The time of the run's newest event, or without one when its folder changed."""
    if summary.last_event_at is not None:
        return summary.last_event_at
    try:
        return min(Path(summary.path).stat().st_mtime, time.time())
    except OSError:
        return 0.0


def _require_removable(folder: Path) -> None:
    if folder.is_symlink():
        raise ConfigError(f"{folder}: must be a run's own folder, got a link. Nothing was removed")
    process = writing_process(folder)
    if process is not None:
        raise RunBusyError(f"{folder}: another process ({process}) is writing to this run. Nothing was removed")
    owner = owner_of(folder)
    if owner == "none":
        raise ConfigError(f"{folder}: no run in it. Nothing was removed")
    if owner != "rl-tui":
        raise ConfigError(f"{foreign_text(folder, owner)}. Nothing was removed")


def _removal_error(folder: Path, error: OSError) -> ConfigError:
    where = os.fsdecode(error.filename) if error.filename else folder
    return ConfigError(f"{where}: cannot be removed ({error.strerror})")
