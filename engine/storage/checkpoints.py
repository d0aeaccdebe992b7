"""The checkpoints of one behavior: published whole or not at all, kept by age and return, verified when read."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import safetensors
from numpy.typing import NDArray

from rl_tui.engine.config.naming import switched_on
from rl_tui.engine.errors import CheckpointError, NonFiniteError
from rl_tui.engine.session.messages import CheckpointReason
from rl_tui.engine.session.returns import best_checkpoint
from rl_tui.engine.specs import BehaviorSpec, State
from rl_tui.engine.storage.behavior_folder import BehaviorFolder, file_name
from rl_tui.engine.storage.checkpoint_format import Checkpoint, describe, encode, encode_manifest, read
from rl_tui.engine.storage.disk import DISK, UNFINISHED, Disk, make_folders, remove_tree
from rl_tui.engine.storage.file_names import ABANDONED_CHECKPOINTS, CHECKPOINTS, MANIFEST
from rl_tui.engine.version import VERSION

BY_CLOCK: CheckpointReason = "clock"
_NAMED_DIFFERENCES = 6  # enough to see which network they are of


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest valid checkpoint, None when there are no checkpoints. skipped: why each newer one is invalid."""

    path: Path | None
    skipped: tuple[str, ...]


class CheckpointStore:
    """The checkpoints of one behavior in one folder, each a folder `<Name>-<step>`; `<Name>-<step>.2` and so on when
    the same step was saved again with other values.

    One writer at a time: the saver thread of the process that holds the run's lock. Any process may read.
    keep: how many of the newest to keep, besides the best; zero or less keeps all. Those saved by the clock do not
    count: the newest of them is kept.
    """

    def __init__(self, folder: Path, name: str, keep: int, spec: BehaviorSpec | None = None, disk: Disk = DISK):
        self.folder = folder
        self.name = name
        self._keep = keep
        self._spec = spec
        self._disk = disk
        self._prefix = file_name(name)
        self._name = re.compile(re.escape(self._prefix) + r"-([0-9]{1,18})(?:\.([0-9]{1,6}))?")
        self._is_open = False

    def open(self) -> None:
        """Create the folder durably and remove what killed writers left unfinished. `save` calls it when needed.

        Raises CheckpointError when the disk refuses.
        """
        if self._is_open:
            return
        try:
            make_folders(self.folder, self._disk)
            for leftover in sorted(self.folder.glob(f"{UNFINISHED}*")):
                remove_tree(leftover, self._disk)
        except OSError as error:
            raise _refused(self.folder, error) from error
        self._is_open = True

    def save(
        self,
        step: int,
        state: State,
        mean_return: float | None,
        reason: CheckpointReason,
        held_out_loss: float | None = None,
    ) -> Path:
        """Publish one checkpoint and return its folder; every byte is then on the medium and was read back.

        A valid checkpoint of that step with the same state is returned unchanged; one with another (for example after a
        hyperparameter was changed), or one by the clock, which is soon removed, stays, and the new one gets a
        number after its step. Raises NonFiniteError when the state holds NaN or infinity, and CheckpointError, its
        cause an OSError, when the disk refuses. Earlier checkpoints are then untouched, and nothing of the new one is
        left.
        """
        self.open()
        path = self._newest_of(step)
        checkpoint = Checkpoint(
            path=path,
            behavior=self.name,
            step=step,
            mean_return=_finite(mean_return),
            reason=reason,
            created_at=time.time(),
            program_version=VERSION,
            spec=self._spec,
            size_bytes=0,
            held_out_loss=_finite(held_out_loss),
        )
        try:
            found = self._found_at(path)
            if found is not None and not _stands_for(found, state, reason):
                path, found = self._path(step, self._order(path)[1] + 1), None
            if found is None:
                self._publish(path, encode(checkpoint, state))
        except NonFiniteError as error:
            raise NonFiniteError(f"{path}: not written, {error}") from error
        except safetensors.SafetensorError as error:
            raise CheckpointError(f"{path}: not written, {error}") from error
        except OSError as error:
            raise _refused(path, error) from error
        return path

    def prune(self, listed: tuple[Checkpoint, ...] | None = None) -> tuple[Checkpoint, ...]:
        """Remove the oldest beyond `keep`, never the best, and all by the clock but the newest; return those removed.

        Raises CheckpointError. listed: the result of `list` where it is known, so that nothing is read again.
        """
        listed = self.list() if listed is None else listed
        by_clock = [checkpoint for checkpoint in listed if checkpoint.reason == BY_CLOCK]
        others = [checkpoint for checkpoint in listed if checkpoint.reason != BY_CLOCK]
        best = best_checkpoint(others)
        extra = others[: max(len(others) - self._keep, 0)] if self._keep > 0 else []
        removed = (*by_clock[:-1], *(checkpoint for checkpoint in extra if checkpoint is not best))
        for checkpoint in removed:
            try:
                self._discard(checkpoint.path)
            except OSError as error:
                raise CheckpointError(f"{checkpoint.path}: cannot be removed ({error.strerror})") from error
        return removed

    def list(self) -> tuple[Checkpoint, ...]:
        """Every checkpoint with a valid description, oldest step first; only `load` verifies the tensors too."""
        checkpoints = []
        for path in self._published():
            with suppress(CheckpointError):
                checkpoints.append(describe(path))
        return tuple(checkpoints)

    def best(self) -> Checkpoint | None:
        """See `best_checkpoint`."""
        return best_checkpoint(self.list())

    def newest_valid(self) -> Newest:
        """The newest checkpoint whose every byte is verified. Raises CheckpointError when all are invalid."""
        skipped = []
        for path in reversed(self._published()):
            try:
                self.load(path)
            except CheckpointError as error:
                skipped.append(str(error))
                continue
            return Newest(path, tuple(skipped))
        if skipped:
            reasons = "".join(f"\n  {reason}" for reason in skipped)
            force = switched_on("checkpoint_settings.force")
            raise CheckpointError(f"{self.folder}: no checkpoint is valid; use {force} to start from scratch{reasons}")
        return Newest(None, ())

    def newer_than(self, path: Path) -> tuple[Path, ...]:
        """The checkpoints after the one at `path`, oldest first, valid or not.

        Raises CheckpointError when `path` is not a checkpoint of this behavior.
        """
        published = self._published()
        if path not in published:
            raise CheckpointError(f"{path}: not a checkpoint of {self.name}; those are in {self.folder}")
        return published[published.index(path) + 1 :]

    def set_aside(self, path: Path) -> Path:
        """Move a checkpoint durably to where a resumed run does not look for it, and return its new path.

        Raises CheckpointError; the checkpoint is then where it was. Of several, set aside the oldest first: a run that
        is killed in between then resumes from the newest.
        """
        aside = self.folder.with_name(ABANDONED_CHECKPOINTS)
        if aside.is_symlink():
            raise CheckpointError(f"{aside}: must be a folder, got a link")
        try:
            make_folders(aside, self._disk)
            names = itertools.chain([path.name], (f"{path.name}.{number}" for number in itertools.count(2)))
            target = next(aside / name for name in names if not os.path.lexists(aside / name))
            self._move(path, target)
        except OSError as error:
            raise CheckpointError(f"{path}: cannot be set aside in {aside} ({error.strerror})") from error
        return target

    def step_of(self, path: Path) -> int:
        """The step in the name of a published checkpoint."""
        return self._order(path)[0]

    def load(self, path: Path) -> tuple[State, Checkpoint]:
        """The verified state saved at `path`. Raises CheckpointError, also when it belongs to another behavior."""
        state, checkpoint = read(path)
        if checkpoint.behavior != self.name:
            raise CheckpointError(f"{path}: must be of behavior {self.name!r}, got {checkpoint.behavior!r}")
        return state, checkpoint

    def _published(self) -> tuple[Path, ...]:
        """By step, valid or not."""
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise CheckpointError(f"{self.folder}: cannot be read ({error.strerror})") from error
        return tuple(sorted((self.folder / name for name in names if self._name.fullmatch(name)), key=self._order))

    def _order(self, path: Path) -> tuple[int, int]:
        """Step and number of a published name; the first checkpoint of a step has the number 1."""
        match = self._name.fullmatch(path.name)
        assert match is not None
        return int(match[1]), int(match[2] or 1)

    def _path(self, step: int, number: int) -> Path:
        return self.folder / (f"{self._prefix}-{step}" if number == 1 else f"{self._prefix}-{step}.{number}")

    def _newest_of(self, step: int) -> Path:
        """The newest published checkpoint of that step, or the path of its first one."""
        published = [path for path in self._published() if self.step_of(path) == step]
        return published[-1] if published else self._path(step, 1)

    def _found_at(self, path: Path) -> tuple[State, Checkpoint] | None:
        """A valid checkpoint, which is then durable; an invalid one is removed."""
        if not os.path.lexists(path):
            return None
        try:
            found = self.load(path)
        except CheckpointError:
            self._discard(path)
            return None
        self._disk.sync(self.folder)  # its writer may have been killed between rename and sync
        return found

    def _move(self, path: Path, target: Path) -> None:
        try:
            self._disk.rename(path, target)
            self._disk.sync(target.parent)
            self._disk.sync(path.parent)
        except OSError:
            with suppress(OSError):
                self._disk.rename(target, path)
            raise

    def _publish(self, path: Path, files: Mapping[str, bytes]) -> None:
        unfinished = path.with_name(UNFINISHED + path.name)
        remove_tree(unfinished, self._disk)
        try:
            self._disk.make_folder(unfinished)
            for name, content in [*files.items(), (MANIFEST, encode_manifest(files))]:
                self._disk.write(unfinished / name, content)
                self._disk.sync(unfinished / name)
            self._disk.sync(unfinished)
            self.load(unfinished)
            self._disk.rename(unfinished, path)
        except (OSError, CheckpointError):
            with suppress(OSError):
                remove_tree(unfinished, self._disk)
            raise
        self._disk.sync(self.folder)

    def _discard(self, path: Path) -> None:
        """Remove one checkpoint so that no crash leaves a part of it under its name."""
        leftover = path.with_name(f"{UNFINISHED}old-{path.name}")
        remove_tree(leftover, self._disk)
        self._disk.rename(path, leftover)
        self._disk.sync(self.folder)
        remove_tree(leftover, self._disk)


def _stands_for(found: tuple[State, Checkpoint], state: State, reason: CheckpointReason) -> bool:
    """Whether a checkpoint of the same step need not be written again for that reason."""
    values, tensors = json.loads(json.dumps(state.values)), found[0].tensors
    is_same = found[0].values == values and all(
        name in tensors and np.array_equal(array, tensors[name]) for name, array in state.tensors.items()
    )
    return is_same and (found[1].reason != BY_CLOCK or reason == BY_CLOCK)


def trained_behaviors(run: Path) -> tuple[str, ...]:
    """The names of the behaviors that have checkpoints in a run's folder, in the order of their folders."""
    return tuple(filter(None, map(_behavior_in, sorted(run.glob(f"*/{CHECKPOINTS}")))))


def _behavior_in(folder: Path) -> str | None:
    """The behavior whose checkpoints are in that folder; None without any."""
    manifests = sorted(folder.glob(f"[!.]*/{MANIFEST}"))
    for manifest in manifests:
        with suppress(CheckpointError):
            return describe(manifest.parent).behavior
    return folder.parent.name if manifests else None


def initial_checkpoint(path: Path, behavior: str) -> Path:
    """The path itself; of a run's folder, the newest checkpoint of that behavior, or else of the only one.

    Raises CheckpointError.
    """
    if not path.exists():
        raise CheckpointError(f"{path}: no such checkpoint, folder of a run, or raw policy")
    held = () if (path / MANIFEST).exists() else trained_behaviors(path)
    if not held:
        return path
    name = behavior if behavior in held else held[0]
    newest = CheckpointStore(BehaviorFolder(name, path / file_name(name)).checkpoints, name, 0).newest_valid()
    if newest.path is None or (name != behavior and len(held) > 1):
        raise CheckpointError(f"{path}: it has no checkpoint of {behavior}, only of {', '.join(held)}")
    return newest.path


def require_same_keys(expected: Mapping[str, NDArray[np.generic]], found: Mapping[str, NDArray[np.generic]]) -> None:
    """Raise CheckpointError with the first differences unless both have the same arrays by name, dtype and shape."""
    must, got = (
        {name: f"{array.dtype}{list(array.shape)}" for name, array in sorted(arrays.items())}
        for arrays in (expected, found)
    )
    differences = [f"missing: {name} {must[name]}" for name in must if name not in got]
    differences += [f"unexpected: {name} {got[name]}" for name in got if name not in must]
    differences += [
        f"{name}: must be {must[name]}, got {got[name]}" for name in must if got.get(name, must[name]) != must[name]
    ]
    if further := differences[_NAMED_DIFFERENCES:]:
        differences[_NAMED_DIFFERENCES:] = [f"and {len(further)} further arrays"]
    if differences:
        raise CheckpointError("the checkpoint does not fit this run:" + "".join(f"\n  {line}" for line in differences))


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def _refused(path: Path, error: OSError) -> CheckpointError:
    return CheckpointError(f"{path}: not written ({error.strerror}); earlier checkpoints are untouched")
