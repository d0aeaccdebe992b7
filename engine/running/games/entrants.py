"""Who plays a game, from the words that name them: runs, checkpoints, exported files, and random play."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, TypeAlias

from rl_tui.engine.config.diagnostics import must_be
from rl_tui.engine.errors import CheckpointError, ConfigError
from rl_tui.engine.running.evaluation.named_checkpoints import find_checkpoint
from rl_tui.engine.running.policy_paths import ONNX
from rl_tui.engine.running.policy_sources import (
    PolicyMisfitError,
    PolicySource,
    read_checkpoint,
    read_exported,
)
from rl_tui.engine.sampling.random_policy import RandomPolicy
from rl_tui.engine.specs import BehaviorSpec
from rl_tui.engine.storage.archive import Archive
from rl_tui.engine.storage.checkpoints import CheckpointStore, trained_behaviors
from rl_tui.engine.storage.file_names import MANIFEST
from rl_tui.engine.storage.run_folder import RunFolder

RANDOM: Final = "random"
NEWEST: Final = "newest"
Kind: TypeAlias = Literal["random", "exported", "checkpoint", "run"]


@dataclass(frozen=True, slots=True)
class Entrant:
    """One of the policies that play, with one for each behavior where it is a run.

    name: as it was typed. path: of the file, the checkpoint or the run's folder, absolute. which: of a run, newest,
    best or a step.
    """

    name: str
    kind: Kind
    path: Path = Path(RANDOM)
    which: str = NEWEST

    @property
    def run(self) -> Path | None:
        """The folder of the run that it is of, as far as that is known."""
        match self.kind:
            case "run":
                return self.path
            case "checkpoint":
                return self.path.parents[2]
        return None

    def read(self, spec: BehaviorSpec) -> PolicySource:
        """Its policy for one behavior: that of the same name, else the first that fits. Raises RlTuiError."""
        match self.kind:
            case "random":
                return PolicySource(self.path, lambda _, seed: RandomPolicy(spec, seed), only="sampled")
            case "exported":
                return read_exported(self.path, spec)
            case "checkpoint":
                return read_checkpoint(self.path, spec)
        names = trained_behaviors(self.path)
        misfits = []
        for name in [spec.name] if spec.name in names else names:
            try:
                return self._read(name, spec)
            except PolicyMisfitError as error:
                misfits.append(str(error))
        raise PolicyMisfitError(f"{self.name}: none of its policies can play {spec.name}: {'; '.join(misfits)}")

    def _read(self, behavior: str, spec: BehaviorSpec) -> PolicySource:
        """The policy that the run has trained for a behavior. spec: of what it acts for here."""
        store = _store(self.path, behavior)
        which, note = self._step_of(store) if self.which.isdecimal() else (self.which, "")
        path, skipped = find_checkpoint(store, which, self.name)
        source = read_checkpoint(path, spec)
        notes = [f"{self.name}: a checkpoint was skipped: {reason}" for reason in skipped]
        return replace(source, warnings=(*source.warnings, *notes, *([note] if note else [])))

    def _step_of(self, store: CheckpointStore) -> tuple[str, str]:
        """The step that was typed, if this behavior was saved then; else the last one before it, or its first one with
        a warning: behaviors that learn together are rarely saved at the same step."""
        typed, own = int(self.which), sorted(one.step for one in store.list())
        if before := [step for step in own if step <= typed]:
            return str(before[-1]), ""
        if not own:
            return self.which, ""
        note = f"{self.name}: {store.name} has no checkpoint that early; its first one, at step {own[0]}, plays"
        return str(own[0]), note


def read_entrants(words: Sequence[str], archive: Archive, *, with_random: bool) -> list[Entrant]:
    """Those that are named, and random play. Raises ConfigError, CheckpointError."""
    typed = [read_entrant(word, archive) for word in words]
    names = [entrant.name for entrant in typed]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{name}: must be named once, got it {names.count(name)} times")
    if RANDOM not in names and with_random:
        typed.append(Entrant(RANDOM, RANDOM))
    if len(typed) < 2:
        raise ConfigError(f"{names[0]}: a game needs two: name another one, or random")
    return typed


def read_entrant(word: str, archive: Archive) -> Entrant:
    """What a word names. Raises ConfigError, or CheckpointError for a run without such a checkpoint."""
    path = Path(word)
    if word == RANDOM:
        return Entrant(word, RANDOM)
    if path.suffix == ONNX:
        if not path.is_file():
            raise ConfigError(f"{word}: no such file")
        return Entrant(word, "exported", path.absolute())
    if (path / MANIFEST).is_file():
        return Entrant(word, "checkpoint", path.absolute())
    return read_run(word, archive)


def read_run(word: str, archive: Archive) -> Entrant:
    """RUN, RUN@STEP, RUN@newest or RUN@best. Raises as `read_entrant`."""
    run, at, which = word.rpartition("@")
    if not at or "/" in which:
        run, which = word, NEWEST
    elif not (which in (NEWEST, "best") or (which.isascii() and which.isdecimal())):
        raise ConfigError(f"{word}: what follows @ {must_be('newest, best or a step', which)}")
    found = archive.resolve(run)
    folder = (found.parent if found.is_file() else found).absolute()
    held = trained_behaviors(folder)
    if not held:
        raise CheckpointError(f"{word}: this run has no checkpoint")
    _require_step(word, folder, held, which)
    return Entrant(word, "run", folder, which)


def _require_step(word: str, run: Path, held: Sequence[str], which: str) -> None:
    """Some behavior was saved at that step. Known before any environment is started, which may take long."""
    if not which.isdecimal():
        return
    steps = {name: [one.step for one in _store(run, name).list()] for name in held}
    if int(which) not in itertools.chain(*steps.values()):
        found = "; ".join(f"{name} has {', '.join(map(str, own))}" for name, own in steps.items())
        raise CheckpointError(f"{word}: no checkpoint at step {which}; {found}")


def _store(run: Path, behavior: str) -> CheckpointStore:
    return CheckpointStore(RunFolder(run.parent, run.name).behavior(behavior).checkpoints, behavior, 0)
