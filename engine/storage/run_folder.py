"""The folder of one run: its paths, its lock, and what happens to the files of an earlier run."""

from __future__ import annotations

import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from rl_tui.engine.config.naming import name_of, switched_on
from rl_tui.engine.errors import ConfigError, RunBusyError
from rl_tui.engine.process.files import open_regular
from rl_tui.engine.process.vital_signs import this_process
from rl_tui.engine.storage.behavior_folder import PLAIN_NAME, BehaviorFolder, file_name, hashed_name
from rl_tui.engine.storage.disk import DISK, UNFINISHED, Disk, make_folders, remove_tree
from rl_tui.engine.storage.file_names import (
    ABANDONED_CHECKPOINTS,
    CHECKPOINTS,
    CONFIGURATION,
    DEVICE_CHOICES,
    EVENTS,
    INFERENCE,
    LOCK,
    OUTPUT,
    POLICIES,
    PREVIOUS_CHECKPOINTS,
    REPLAY_BUFFER,
    RUN_LOGS,
    SCREENSHOTS,
    TIMERS,
    TRAINING_STATUS,
)
from rl_tui.engine.storage.ownership import (
    foreign_text,
    has_begun,
    has_learned,
    owner_of,
    process_in,
    sign,
    take_lock,
    writing_process,
)
from rl_tui.engine.storage.run_ids import first_run_id, newest_run_id, next_run_id, run_name

if TYPE_CHECKING:  # its import takes longer than to list fifty runs
    from rl_tui.engine.config.run import RunConfig


RESUME, FORCE = "checkpoint_settings.resume", "checkpoint_settings.force"
RUN_ID, RESULTS_DIR = "checkpoint_settings.run_id", "checkpoint_settings.results_dir"


class RunFolder:
    """results_dir/run_id. Reading needs no lock; a writer calls `open` first and holds the lock until `close`.

    Raises ConfigError when run_id is not a plain file name.
    """

    def __init__(
        self, results_dir: Path, run_id: str, disk: Disk = DISK, is_counted: bool = False, resumes_by: str = ""
    ):
        """is_counted: there is no --run-id, and `open` may append a number to run_id. resumes_by: the place in a
        file that asks for a run to be continued; "" for none."""
        if not PLAIN_NAME.fullmatch(run_id):
            raise ConfigError(
                f"{name_of(RUN_ID)}: must be 1 to 64 letters, digits, dots, hyphens and underscores, starting with a"
                f" letter or a digit, got {run_id!r}"
            )
        self.run_id = run_id
        self.path = results_dir / run_id
        self._disk = disk
        self._is_counted = is_counted
        self._resumes_by = resumes_by or name_of(RESUME)
        self._resume = "resume: true" if resumes_by else switched_on(RESUME)
        self._lock: int | None = None
        self._is_new = False
        self._is_resumed = False

    @classmethod
    def of(cls, config: RunConfig) -> RunFolder:
        """The folder of a run with this configuration, as an absolute path."""
        settings = config.checkpoint_settings
        results_dir = Path(settings.results_dir).absolute()
        resumes_by = config.source.place_in_file(("checkpoint_settings", "resume")) or ""
        if settings.run_id is not None:
            return cls(results_dir, settings.run_id, resumes_by=resumes_by)
        named_by = config.source.run_name or config.source.file
        return cls.of_file(results_dir, named_by, or_start=settings.resume_or_start, resumes_by=resumes_by)

    @classmethod
    def of_file(cls, results_dir: Path, file: str, *, or_start: bool, resumes_by: str = "") -> RunFolder:
        """The folder of a run without --run-id. or_start: always the same one, that of the first run of this file."""
        name = run_name(file)
        run_id = first_run_id(name) if or_start else name
        return cls(results_dir, run_id, is_counted=not or_start, resumes_by=resumes_by)

    @property
    def results_dir(self) -> Path:
        """The folder of all runs."""
        return self.path.parent

    @property
    def configuration(self) -> Path:
        """The effective configuration, written at the start."""
        return self.path / CONFIGURATION

    @property
    def events(self) -> Path:
        """Every event of the run as JSON lines."""
        return self.path / EVENTS

    @property
    def inference(self) -> Path:
        """Every event of processes that only ran inference."""
        return self.path / INFERENCE

    @property
    def run_logs(self) -> Path:
        """The folder of logs and timers."""
        return self.path / RUN_LOGS

    @property
    def output(self) -> Path:
        """What environments printed, and the tracebacks of those that failed."""
        return self.run_logs / OUTPUT

    @property
    def timers(self) -> Path:
        """How long each part of training took."""
        return self.run_logs / TIMERS

    @property
    def training_status(self) -> Path:
        """The checkpoints of every behavior, in ML-Agents' format."""
        return self.run_logs / TRAINING_STATUS

    @property
    def device_choices(self) -> Path:
        """On which devices behaviors update and act that have chosen them."""
        return self.run_logs / DEVICE_CHOICES

    @property
    def is_resumed(self) -> bool:
        """Whether this process continues an earlier run. Valid once it is open."""
        return self._is_resumed

    @property
    def has_begun(self) -> bool:
        """Whether there is a run to continue."""
        return has_begun(self.path)

    def open(self, resume: bool = False, force: bool = False, *, or_start: bool = False) -> tuple[str, ...]:
        """Create the folder and its run_logs, and lock them for this process; return a line for each change made.

        An earlier run that has learned something requires `resume`, `or_start` or `force`; with several, the first of
        them wins, as in ML-Agents. or_start: resume the run if there is one, otherwise start it; nothing is replaced. A
        folder with anything else in it is never touched. Raises ConfigError, or RunBusyError naming the process that
        writes here.
        """
        try:
            done = self._choose(resume, force) if self._is_counted else ()
            existed = self.path.is_dir()
            done += self._require_allowed(existed, resume, force or or_start)
            make_folders(self.path, self._disk)
            self._acquire()
            self._is_new |= not existed
            self._sweep()
            self._is_resumed = resume or (or_start and self.has_begun)
            if not (resume or or_start):
                done += self._set_aside()
            make_folders(self.run_logs, self._disk)
        except OSError as error:
            self.close()
            reason = f"{error.strerror}: {error.filename}"
            text = f"{self.path}: cannot be created ({reason}). {name_of(RESULTS_DIR)} must be writable"
            raise ConfigError(text) from error
        return done

    def require_startable(self, resume: bool, force: bool, *, or_start: bool = False) -> None:
        """Raise as `open` would now; nothing is changed."""
        if self._is_counted:
            if not resume:
                return  # its folder will be new
            self._use_newest()
        self._require_allowed(self.path.is_dir(), resume, force or or_start)
        self._require_idle()

    def require_exists(self, flag: str) -> None:
        """Raise ConfigError naming `flag`, for example --initialize-from, unless the folder holds a run of rl-tui."""
        owner = owner_of(self.path)
        if owner == "none":
            raise ConfigError(f"{flag}: no run in {self.path}")
        if owner != "rl-tui":
            raise ConfigError(f"{flag} {self.run_id}: {foreign_text(self.path, owner)}")

    def discard(self) -> None:
        """Remove the folder if `open` created it, after a run that could not start."""
        if self._is_new:
            remove_tree(self.path, self._disk)

    def close(self) -> None:
        """Release the lock, if it is held."""
        if self._lock is not None:
            fcntl.flock(self._lock, fcntl.LOCK_UN)  # after closing alone, forked workers would still hold it
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def behavior(self, name: str) -> BehaviorFolder:
        """The paths of that behavior's files. Raises ConfigError when a link leads out of this folder.

        A name that differs only in case from an existing one gets a slug and a hash: on macOS they would be the same.
        """
        plain = file_name(name)
        taken = [entry.name for entry in self.path.iterdir()] if self.path.is_dir() else []
        twins = [other for other in taken if other.lower() == plain.lower()]
        path = self.path / (plain if plain in twins or not twins else hashed_name(name))
        if path.is_symlink() or (path / CHECKPOINTS).is_symlink():
            raise ConfigError(f"{path}: must be a folder, got a link")
        return BehaviorFolder(name, path)

    def add_behavior(self, name: str) -> BehaviorFolder:
        """`behavior(name)`, after creating its folder. Raises ConfigError."""
        folder = self.behavior(name)
        try:
            make_folders(folder.path, self._disk)
        except OSError as error:
            raise ConfigError(f"{folder.path}: cannot be created ({error.strerror})") from error
        return folder

    def _choose(self, resume: bool, force: bool) -> tuple[str, ...]:
        """Use the newest run of this name, or create a folder that no other process has created."""
        name, self._is_counted = self.run_id, False
        if resume:
            self._use_newest()
            text = f"{self._resume} continues {self.run_id}, the newest run of {name}"
            return (f"{text}; {name_of(RUN_ID)} names another",)
        make_folders(self.results_dir, self._disk)
        while not self._is_new:
            self._use_id(next_run_id(self.results_dir, name))
            with suppress(FileExistsError):  # another process was faster
                self._disk.make_folder(self.path)
                self._is_new = True
        unused = f"{switched_on(FORCE)} has no effect without {name_of(RUN_ID)}: this run has a folder of its own"
        return (unused,) if force else ()

    def _use_newest(self) -> None:
        """Use the newest run of this name. Raises ConfigError."""
        run_id = newest_run_id(self.results_dir, self.run_id)
        if run_id is None:
            where = f"no run of {self.run_id} in {self.results_dir}"
            raise ConfigError(f"{self._resumes_by}: {where}. Name one with {name_of(RUN_ID)}, or remove {self._resume}")
        self._use_id(run_id)

    def _use_id(self, run_id: str) -> None:
        self.path = self.results_dir / run_id
        self.run_id = run_id

    def _require_allowed(self, existed: bool, resume: bool, accepts_run: bool) -> tuple[str, ...]:
        """Raise unless this run may start or resume here; returns notes for the user.

        accepts_run: also where an earlier run is, without resuming it.
        """
        if self.path.exists() and not existed:
            raise ConfigError(f"{self.path}: must be a folder, got a file")
        if resume and not existed:
            raise ConfigError(f"{self._resumes_by}: no run in {self.path}. Remove {self._resume} to start a new one")
        owner = owner_of(self.path)
        if owner in ("ML-Agents", "other"):
            text = f"{foreign_text(self.path, owner)}. Nothing in it was changed: choose another {name_of(RUN_ID)}"
            raise ConfigError(text)
        self._require_own_files()
        if owner == "none" or resume or accepts_run:
            return ()
        self._require_idle()
        if has_learned(self.path):
            raise ConfigError(
                f"{self.path} holds an earlier run. Continue it with {switched_on(RESUME)}, replace it with"
                f" {switched_on(FORCE)}, or choose another {name_of(RUN_ID)}"
            )
        return (f"{self.path}: its earlier run ended before it learned anything and is replaced",)

    def _require_own_files(self) -> None:
        """Raise ConfigError if anything that this run reads or writes is neither a file nor a folder of its own."""
        own = [self.path / name for name in (LOCK, EVENTS, INFERENCE, CONFIGURATION, RUN_LOGS, SCREENSHOTS)]
        folders = (CHECKPOINTS, ABANDONED_CHECKPOINTS, POLICIES)
        of_behaviors = [entry / name for entry in self.path.glob("*") for name in folders]
        for path in (*own, *self.run_logs.glob("*"), *of_behaviors):
            if kind := _kind_of_stranger(path):
                raise ConfigError(f"{path}: must be a file or folder of the run itself, got {kind}")

    def _require_idle(self) -> None:
        """Raise RunBusyError while a process writes here."""
        process = writing_process(self.path)
        if process is not None:
            raise self._busy(process)

    def _acquire(self) -> None:
        """Take the lock, which the kernel releases however this process ends."""
        descriptor = open_regular(self.path / LOCK, os.O_RDWR | os.O_CREAT)
        if not take_lock(descriptor, fcntl.LOCK_EX):
            process = process_in(descriptor)
            os.close(descriptor)
            raise self._busy(process)
        sign(descriptor)
        self._lock = descriptor

    def _busy(self, process: str) -> RunBusyError:
        if process == this_process():
            what = "this process itself is writing to this run"
            text = f"{what}: end what does (close() of a Learner, stop() of a run), or choose another folder"
            return RunBusyError(f"{self.path}: {text}")
        return RunBusyError(
            f"{self.path}: another process ({process}) is writing to this run. Stop it, show it with `rl-tui"
            f" attach {self.run_id}`, or choose another {name_of(RUN_ID)}"
        )

    def _sweep(self) -> None:
        """Remove what a killed process was writing."""
        for folder, folders, files in os.walk(self.path):
            for name in [*folders, *files]:
                if name.startswith(UNFINISHED):
                    remove_tree(Path(folder, name), self._disk)
            folders[:] = [name for name in folders if not name.startswith(UNFINISHED)]

    def _set_aside(self) -> tuple[str, ...]:
        """Move or remove old files that would be mistaken for the new run's; see docs/checkpoints.md."""
        done = []
        for stale in (self.training_status, self.timers, self.events, self.output, self.device_choices):
            remove_tree(stale, self._disk)
        for folder in sorted(entry for entry in self.path.iterdir() if entry.is_dir() and not entry.is_symlink()):
            for stale in (*sorted(folder.glob("events.out.tfevents.*")), *folder.glob(REPLAY_BUFFER)):
                remove_tree(stale, self._disk)
                done.append(f"removed {stale}")
            checkpoints, previous = folder / CHECKPOINTS, folder / PREVIOUS_CHECKPOINTS
            if checkpoints.is_dir() and any(not e.name.startswith(UNFINISHED) for e in checkpoints.iterdir()):
                remove_tree(previous, self._disk)
                self._disk.rename(checkpoints, previous)
                self._disk.sync(folder)
                done.append(f"moved {checkpoints} to {previous}")
        return tuple(done)


def _kind_of_stranger(path: Path) -> str:
    """What is there; "" for a file, a folder, and nothing."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return ""
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return ""
    return "a link" if stat.S_ISLNK(mode) else "a named pipe" if stat.S_ISFIFO(mode) else "a socket or a device"
