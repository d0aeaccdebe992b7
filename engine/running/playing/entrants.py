"""Whose policy plays: that of a run, of an exported file, or one that acts at random."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rl_tui.engine.config.diagnostics import must_be
from rl_tui.engine.errors import CheckpointError, ConfigError
from rl_tui.engine.export.onnx_policy import OnnxPolicy
from rl_tui.engine.running.checkpoint_policy import policy_of_checkpoint
from rl_tui.engine.running.misfit import spec_differences
from rl_tui.engine.sampling.random_policy import RandomPolicy
from rl_tui.engine.specs import BehaviorSpec, Policy, State
from rl_tui.engine.storage.archive import Archive
from rl_tui.engine.storage.checkpoint_format import Checkpoint
from rl_tui.engine.storage.checkpoints import CheckpointStore, trained_behaviors
from rl_tui.engine.storage.run_folder import RunFolder

RANDOM, NEWEST, BEST = "random", "newest", "best"
ONNX = ".onnx"


@dataclass(frozen=True, slots=True)
class Entrant:
    """name: as it was typed. path: of a run's folder or an ONNX file; None: it acts at random. checkpoint: of a run,
    NEWEST, BEST or a step."""

    name: str
    path: Path | None
    checkpoint: str = NEWEST


def read_entrant(typed: str, archive: Archive) -> Entrant:
    """RUN, RUN@STEP, RUN@best, FILE.onnx or random. Raises ConfigError where there is no such run or file."""
    if typed == RANDOM:
        return Entrant(typed, None)
    if typed.endswith(ONNX):
        if not Path(typed).is_file():
            raise ConfigError(f"{typed}: no such file")
        return Entrant(typed, Path(typed).absolute())
    return read_run(typed, archive)


def read_run(typed: str, archive: Archive) -> Entrant:
    """RUN, RUN@STEP or RUN@best. Raises ConfigError where there is no such run."""
    name, at, which = typed.rpartition("@")
    if not at or "/" in which:
        return Entrant(typed, _folder(archive.resolve(typed)))
    if which in (NEWEST, BEST) or (which.isascii() and which.isdigit()):
        return Entrant(typed, _folder(archive.resolve(name)), which)
    raise ConfigError(f"{typed}: after @, {must_be('newest, best or a step', which)}")


def _folder(path: Path) -> Path:
    """Of the run, whatever the working directory is later."""
    return (path.parent if path.is_file() else path).absolute()


class EntrantPolicies:
    """Used by one thread. Policies are read once: a run that trains removes checkpoints.

    seed: of what they sample. others_are_random: the run had agents that acted at random, and behaviors that none of
    its policies fits act so, too.
    """

    def __init__(self, entrant: Entrant, seed: int, *, others_are_random: bool = False) -> None:
        self.entrant, self._seed, self._others_are_random = entrant, seed, others_are_random
        self._found: dict[str, tuple[State, Checkpoint] | None] = {}  # by behavior of the environment

    def make(self, spec: BehaviorSpec, *, is_greedy: bool) -> Policy:
        """One for these agents, whose behavior the run may name otherwise. Raises RlTuiError where none fits."""
        path = self.entrant.path
        if path is None:
            return RandomPolicy(spec, self._seed)
        if path.suffix == ONNX:
            return OnnxPolicy(path, spec, is_greedy)
        if spec.name not in self._found:
            self._found[spec.name] = self._find(path, spec)
        found = self._found[spec.name]
        if found is None:
            return RandomPolicy(spec, self._seed)
        configuration = RunFolder(path.parent, path.name).configuration
        return policy_of_checkpoint(configuration, spec, *found, self._seed, is_greedy)

    def in_words(self, spec: BehaviorSpec) -> str:
        """Who acts for these agents: "walker at step 50,000"."""
        found, path = self._found.get(spec.name), self.entrant.path
        if path is None or (path.suffix != ONNX and found is None):
            return RANDOM
        return path.name if found is None else f"{path.name} at step {found[1].step:,}"

    def _find(self, path: Path, spec: BehaviorSpec) -> tuple[State, Checkpoint] | None:
        """The checkpoint of its behavior, or of the first one that fits; None for agents that act at random."""
        names = trained_behaviors(path)
        if not names:
            raise CheckpointError(f"{self.entrant.name}: has no checkpoint yet; {path} has none")
        misfits = []
        for name in sorted(names, key=lambda name: name != spec.name):
            state, checkpoint = self._load(path, name)
            differences = [] if checkpoint.spec is None else list(spec_differences(checkpoint.spec, spec))
            if not differences:
                return state, checkpoint
            misfits.append(f"{name} has {' and '.join(differences)}")
        if self._others_are_random:
            return None
        raise ConfigError(f"{self.entrant.name}: none of its policies can play {spec.name}: {'; '.join(misfits)}")

    def _load(self, path: Path, name: str) -> tuple[State, Checkpoint]:
        """Raises CheckpointError where there is no such checkpoint."""
        store, which = CheckpointStore(RunFolder(path.parent, path.name).behavior(name).checkpoints, name, 0), NEWEST
        listed, which = store.list(), self.entrant.checkpoint
        if which == NEWEST:
            found = store.newest_valid().path
        elif which == BEST:
            best = store.best()
            found = None if best is None else best.path
        else:
            found = next((one.path for one in reversed(listed) if one.step == int(which)), None)
        if found is None:
            steps = ", ".join(str(one.step) for one in listed) or "none"
            raise CheckpointError(f"{self.entrant.name}: {name} has no such checkpoint; available steps: {steps}")
        return store.load(found)
