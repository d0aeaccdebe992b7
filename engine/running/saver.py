"""The thread that writes checkpoints and exports, and restores them, so that training only pays for a copy."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from rl_tui.engine.errors import CheckpointError, ExportError, NonFiniteError
from rl_tui.engine.export.exporter import PolicyExporter
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.command_desk import Report
from rl_tui.engine.session.messages import (
    CheckpointFailed,
    CheckpointReason,
    CheckpointRemoved,
    CheckpointSaved,
    ExportFailed,
    PolicyExported,
)
from rl_tui.engine.session.returns import best_checkpoint
from rl_tui.engine.specs import State, Weights
from rl_tui.engine.storage.behavior_folder import BehaviorFolder
from rl_tui.engine.storage.checkpoint_format import Checkpoint, describe
from rl_tui.engine.storage.checkpoints import CheckpointStore, require_same_keys
from rl_tui.engine.storage.replay_buffer_file import write_replay_buffer

POLL_SECONDS = 0.1

_EXPORTING = threading.Lock()  # torch exports one graph at a time, whichever run of this process asks for it


@dataclass(frozen=True, slots=True)
class SaveJob:
    """Copies of everything to write.

    state: None to write no checkpoint. commands: the ids of those that are answered once the checkpoint (or else the
    export) is written or has failed. replay: the experience to keep next to the checkpoint, None for none.
    """

    behavior: str
    step: int
    weights: Weights
    state: State | None
    reason: CheckpointReason
    mean_return: float | None
    commands: tuple[str, ...] = ()
    with_export: bool = True
    replay: State | None = None
    held_out_loss: float | None = None


Restored: TypeAlias = tuple[State, Checkpoint]


@dataclass(frozen=True, slots=True)
class RollBackJob:
    """Read the checkpoint at `path` and set aside newer ones. answer: what was read, or why nothing was changed.

    expected: the trainer's arrays, which the checkpoint must also have.
    """

    behavior: str
    path: Path
    expected: State
    answer: queue.Queue[Restored | str]


Listed: TypeAlias = Callable[[str], tuple[Checkpoint, ...]]  # the checkpoints of a behavior, oldest first


@dataclass(frozen=True, slots=True)
class Files:
    """What writes one behavior's files, and where. exporter: None where its policy cannot be exported.
    keeps_exports: exports outlive the checkpoint of their step."""

    folder: BehaviorFolder
    store: CheckpointStore
    exporter: PolicyExporter | None
    keeps_exports: bool = False
    why_not_exported: str = ""


class Saver:
    """Runs in the saver thread. Owns the checkpoint and export files of every behavior. At most one job waits.

    report: called in this thread with the outcome of commands. on_saved: called in it with `listed` after every
    checkpoint, to write the list of checkpoints again.
    is_inline: there is no such thread, and every job is done in the thread that submits it, before that returns.
    """

    def __init__(
        self,
        files: Mapping[str, Files],
        bus: EventBus,
        report: Report,
        on_saved: Callable[[Listed], None],
        *,
        is_inline: bool = False,
    ):
        self._files = files
        self._bus = bus
        self._report = report
        self._on_saved = on_saved
        self._is_inline = is_inline
        self._jobs: queue.Queue[SaveJob | RollBackJob | None] = queue.Queue(maxsize=1)
        self._listed: dict[str, tuple[Checkpoint, ...]] = {}  # by behavior: its checkpoints after the last save
        self._written_replays: dict[str, threading.Event] = {}  # by behavior: of its newest copy
        self._refused: dict[str, CheckpointError] = {}  # by behavior, while its newest checkpoint could not be written
        self._has_saves: set[str] = set()  # behaviors with a job for a checkpoint from before anything failed
        self._first_jobs: list[SaveJob] = []
        self.on_wait: Callable[[], None] = lambda: None  # called from time to time by a learner that waits here
        self._is_ending = False
        self.has_ended = False

    def put_first(self, job: SaveJob) -> None:
        """Do the job before all others. Called before `main`."""
        if self._is_inline:
            self._do(job)
        else:
            self._first_jobs.append(job)

    @property
    def has_room(self) -> bool:
        """Whether `put` would not wait."""
        return not self._jobs.full()

    @property
    def losses(self) -> list[CheckpointError]:
        """Why the last checkpoint was not written, for each behavior without it. Any thread."""
        return list(self._refused.copy().values())

    def has_good(self, behavior: str) -> bool:
        """Whether there is a checkpoint from before anything failed, or will be once it is written. Any thread."""
        if behavior in self._has_saves:
            return True
        try:
            return any(checkpoint.reason != "error" for checkpoint in self._files[behavior].store.list())
        except OSError:
            return False

    def listed(self, behavior: str) -> tuple[Checkpoint, ...]:
        """Its checkpoints, oldest first, as of its last save. Called in `on_saved`."""
        if behavior not in self._listed:
            self._listed[behavior] = self._files[behavior].store.list()
        return self._listed[behavior]

    def offer(self, job: SaveJob) -> bool:
        """Queue the job if no other waits."""
        self._expect_replay(job)
        try:
            if self._is_inline:
                self._do(job)
            else:
                self._jobs.put_nowait(job)
        except queue.Full:
            self._forget_replay(job)
            return False
        self._note_save(job)
        return True

    def put(self, job: SaveJob | RollBackJob) -> None:
        """Queue the job, waiting for the one before. The saver outlives every learner."""
        if isinstance(job, SaveJob):
            self._expect_replay(job)
            self._note_save(job)
        if self._is_inline:
            self._do(job)
            return
        while not self.has_ended:
            with suppress(queue.Full):
                self._jobs.put(job, timeout=POLL_SECONDS)
                return
            self.on_wait()

    def _note_save(self, job: SaveJob) -> None:
        if job.state is not None and job.reason != "error":
            self._has_saves.add(job.behavior)

    def has_written_replay(self, behavior: str, may_wait: bool = False) -> bool:
        """Whether no copy of that behavior's replay buffer is queued or being written; waits for that if it may."""
        written = self._written_replays.get(behavior)
        while may_wait and written is not None and not self.has_ended and not written.wait(POLL_SECONDS):
            self.on_wait()
        return written is None or written.is_set()

    def _expect_replay(self, job: SaveJob) -> None:
        if job.replay is not None:
            self._written_replays[job.behavior] = threading.Event()

    def _forget_replay(self, job: SaveJob) -> None:
        if job.replay is not None:
            self._written_replays[job.behavior].set()

    def roll_back(self, behavior: str, path: Path, expected: State) -> Restored:
        """What the checkpoint at `path` holds; it is then the newest of its behavior.

        Called by a learner, which waits: earlier jobs are written first. Raises CheckpointError; a resumed run then
        begins with the same checkpoint as before.
        """
        job = RollBackJob(behavior, path, expected, queue.Queue(1))
        self.put(job)
        answer: Restored | str | None = None
        while answer is None:
            has_ended = self.has_ended  # read before looking, so that no answer can come between
            try:
                answer = job.answer.get(timeout=POLL_SECONDS)
            except queue.Empty:
                self.on_wait()
                answer = "the saver has ended" if has_ended else None
        if isinstance(answer, str):
            raise CheckpointError(answer)
        return answer

    def end(self) -> None:
        """End once every job is written."""
        self._is_ending = True
        with suppress(queue.Full):  # then `main` will not wait for the next job
            self._jobs.put_nowait(None)

    def main(self) -> None:
        """Write job after job until `end`."""
        try:
            while self._first_jobs:
                self._write(self._first_jobs.pop(0))
            while not (self._is_ending and self._jobs.empty()):
                self._serve()
        finally:
            self.has_ended = True

    def _serve(self) -> None:
        """Do the next job, and keep no reference to it."""
        job = self._jobs.get()
        if job is not None:
            self._do(job)

    def _do(self, job: SaveJob | RollBackJob) -> None:
        if isinstance(job, RollBackJob):
            job.answer.put(self._roll_back(job))
            return
        try:
            self._write(job)
        finally:  # interrupted by Ctrl-C, it is not waited for
            self._forget_replay(job)

    def _write(self, job: SaveJob) -> None:
        """The checkpoint first: it must not be lost."""
        saved = None if job.state is None else self._save(job, job.state)
        exported = self._export(job) if job.with_export else None
        outcome = saved or exported
        assert outcome is not None, "a job has something to write"
        for command in job.commands:
            self._report(command, job.behavior, *outcome)
        if job.state is None and job.reason == "error":
            self.report_unsaved(job.behavior, job.step)
        if job.replay is not None:
            self._save_replay(job, job.replay)

    def report_unsaved(self, behavior: str, step: int) -> None:
        """Log what a resumed run would begin with. Called once all before is written."""
        listed = self.listed(behavior)
        newest = f"the newest checkpoint is {listed[-1].path}" if listed else "there is no earlier checkpoint"
        self._bus.log("error", behavior, f"the state at step {step} is not saved: {newest}")

    def _save_replay(self, job: SaveJob, replay: State) -> None:
        path = self._files[job.behavior].folder.replay_buffer
        try:
            write_replay_buffer(path, job.behavior, job.step, replay)
        except CheckpointError as error:
            self._bus.log("warning", job.behavior, f"the replay buffer is not saved: {error}")

    def _save(self, job: SaveJob, state: State) -> tuple[bool, str]:
        store, start = self._files[job.behavior].store, time.monotonic()
        try:
            path = store.save(job.step, state, job.mean_return, job.reason, job.held_out_loss)
            self._listed[job.behavior] = store.list()
            best = best_checkpoint(self._listed[job.behavior])
            saved = describe(path)  # of an earlier process, where it was there already
            size = sum(file.stat().st_size for file in path.iterdir())
        except (CheckpointError, NonFiniteError, OSError) as error:
            self._refused[job.behavior] = CheckpointError(f"{job.behavior}: step {job.step} was not saved: {error}")
            self._bus.publish(CheckpointFailed(job.behavior, job.step, job.reason, str(error)))
            return False, str(error)
        self._refused.pop(job.behavior, None)
        self._bus.publish(
            CheckpointSaved(
                behavior=job.behavior,
                step=job.step,
                path=str(path),
                reason=job.reason,
                mean_return=saved.mean_return,
                is_best=best is not None and best.path == path,
                size_bytes=size,
                seconds=time.monotonic() - start,
                lessons=saved.lessons,
                held_out_loss=saved.held_out_loss,
            )
        )
        self._prune(job.behavior)
        return True, str(path)

    def _prune(self, behavior: str) -> None:
        files = self._files[behavior]
        try:
            standing = self._listed.pop(behavior)
            removed = files.store.prune(standing)
            self._listed[behavior] = tuple(each for each in standing if each not in removed)
            kept_steps = {checkpoint.step for checkpoint in self._listed[behavior]}
            for checkpoint in removed:
                if checkpoint.step not in kept_steps and not files.keeps_exports:
                    for export in files.folder.exports(checkpoint.step):
                        export.unlink(missing_ok=True)
                self._bus.publish(CheckpointRemoved(behavior, checkpoint.step, str(checkpoint.path)))
        except (CheckpointError, OSError) as error:
            self._bus.log("warning", behavior, f"an old checkpoint is still there: {error}")
        self._update_list(behavior)

    def _update_list(self, behavior: str) -> None:
        try:
            self._on_saved(self.listed)
        except (CheckpointError, OSError) as error:
            self._bus.log("warning", behavior, f"the list of checkpoints is not up to date: {error}")

    def _roll_back(self, job: RollBackJob) -> Restored | str:
        store = self._files[job.behavior].store
        try:
            newer = store.newer_than(job.path)
            state, checkpoint = store.load(job.path)
            require_same_keys(job.expected.tensors, state.part("trainer").tensors)
        except CheckpointError as error:
            return str(error)
        try:
            self._listed.pop(job.behavior, None)
            for path in newer:  # oldest first: killed in between, the run resumes from the newest, as without this
                self._set_aside(job.behavior, path, checkpoint.step)
        except CheckpointError as error:
            return str(error)
        finally:
            self._update_list(job.behavior)
        return state, checkpoint

    def _set_aside(self, behavior: str, path: Path, kept_step: int) -> None:
        """Move the checkpoint away, with its exported policies unless they are also of `kept_step`."""
        files = self._files[behavior]
        step = files.store.step_of(path)
        aside = files.store.set_aside(path)
        self._bus.publish(CheckpointRemoved(behavior, step, str(path)))
        stem = files.folder.export(step).stem
        for export in files.folder.exports(step) if step != kept_step else ():
            try:
                if export.exists():
                    export.replace(aside.with_name(aside.name + export.name.removeprefix(stem)))
            except OSError as error:
                text = f"{export}: still there, of a checkpoint that was set aside ({error.strerror})"
                self._bus.log("warning", behavior, text)

    def _export(self, job: SaveJob) -> tuple[bool, str]:
        files, start = self._files[job.behavior], time.monotonic()
        if files.exporter is None:
            return False, files.why_not_exported
        path: Path = files.folder.export(job.step)
        try:
            with _EXPORTING:
                difference = files.exporter.export(job.weights, job.step, files.folder)
        except ExportError as error:
            self._bus.publish(ExportFailed(job.behavior, job.step, str(error)))
            return False, str(error)
        self._bus.publish(PolicyExported(job.behavior, job.step, str(path), difference, time.monotonic() - start))
        return True, str(path)
