"""Who takes part in an arena, from the words that name them: runs, checkpoints, exported files, and random play."""

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
from rl_tui.engine.running.policy_sources import PolicySource, read_checkpoint, read_exported
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

    name: as it was typed. path: of the file, the checkpoint or the run's folder. which: of a run, newest, best or a
    step.
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
                return self.path.absolute().parents[2]
        return None

    def read(self, spec: BehaviorSpec, behaviors: Sequence[str]) -> PolicySource:
        """Its policy for one of these behaviors, which are all of the environment. Raises RlTuiError."""
        match self.kind:
            case "random":
                return PolicySource(self.path, lambda _, seed: RandomPolicy(spec, seed), only="sampled")
            case "run":
                return self._read_run(spec, is_only=len(behaviors) == 1)
        if len(behaviors) > 1:
            several = f"and the environment has several: {', '.join(behaviors)}. Name a run"
            raise ConfigError(f"{self.path}: it acts for one behavior, {several}")
        return read_exported(self.path, spec) if self.kind == "exported" else read_checkpoint(self.path, spec)

    def _read_run(self, spec: BehaviorSpec, *, is_only: bool) -> PolicySource:
        held = trained_behaviors(self.path)
        store = _store(self.path, held[0] if is_only and len(held) == 1 else spec.name)
        which = self._step_before(store, held) if self.which.isdecimal() else self.which
        path, skipped = find_checkpoint(store, which, self.name)
        source = read_checkpoint(path, spec)
        reasons = tuple(f"{self.name}: a checkpoint was skipped: {reason}" for reason in skipped)
        return replace(source, warnings=(*source.warnings, *reasons))

    def _step_before(self, store: CheckpointStore, held: Sequence[str]) -> str:
        """The step that was typed. Where another behavior of the run was saved at that step, the last one before it:
        behaviors that learn together are rarely saved at the same one."""
        typed, own = int(self.which), [one.step for one in store.list()]
        before = [step for step in own if step <= typed]
        others = [_store(self.path, name) for name in held if name != store.name]
        is_of_other = any(one.step == typed for other in others for one in other.list())
        return str(max(before)) if is_of_other and before else self.which


def read_entrants(words: Sequence[str], results_dir: Path, *, with_random: bool) -> list[Entrant]:
    """Those that are named, and random play. Raises ConfigError, CheckpointError."""
    typed = [read_entrant(word, results_dir) for word in words]
    names = [entrant.name for entrant in typed]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{name}: must be named once, got it {names.count(name)} times")
    if RANDOM not in names and with_random:
        typed.append(Entrant(RANDOM, RANDOM))
    if len(typed) < 2:
        raise ConfigError(f"{names[0]}: a game needs two: name another one, or random")
    return typed


def read_entrant(word: str, results_dir: Path) -> Entrant:
    """What a word names. Raises ConfigError, or CheckpointError for a folder without checkpoints."""
    path = Path(word)
    if word == RANDOM:
        return Entrant(word, RANDOM)
    if path.suffix == ONNX:
        if not path.is_file():
            raise ConfigError(f"{word}: no such file")
        return Entrant(word, "exported", path.absolute())
    if (path / MANIFEST).is_file():
        return Entrant(word, "checkpoint", path.absolute())
    run, at, which = word.rpartition("@")
    if not at:
        run, which = word, NEWEST
    elif not (which in (NEWEST, "best") or (which.isascii() and which.isdecimal())):
        raise ConfigError(f"{word}: what follows @ {must_be('newest, best or a step', which)}")
    found = Archive(results_dir).resolve(run)
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
    folder = RunFolder(run.parent.absolute(), run.name)
    return CheckpointStore(folder.behavior(behavior).checkpoints, behavior, 0)
