"""What a behavior starts from: what an earlier process of its run has learned, or another run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.diagnostics import one_of, visible
from rl_tui.engine.config.naming import name_of
from rl_tui.engine.config.run import CheckpointSettings
from rl_tui.engine.errors import CheckpointError, ConfigError
from rl_tui.engine.export.policy_files import RAW, read_weights
from rl_tui.engine.learning.replay.redistribution import require_divisible
from rl_tui.engine.learning.saved_actor import SavedActor
from rl_tui.engine.learning.trainer import Trainer
from rl_tui.engine.running.checkpoint_parts import TRAINER, CheckpointParts
from rl_tui.engine.running.misfit import trained_otherwise
from rl_tui.engine.sampling.environments.unity.wire.packages import misread_before
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.specs import BehaviorSpec, Policy, State
from rl_tui.engine.storage.behavior_folder import BehaviorFolder
from rl_tui.engine.storage.checkpoint_format import Checkpoint, read
from rl_tui.engine.storage.checkpoints import CheckpointStore, initial_checkpoint, require_same_keys, trained_behaviors
from rl_tui.engine.storage.replay_buffer_file import read_replay_buffer
from rl_tui.engine.storage.run_folder import RunFolder
from rl_tui.engine.version import VERSION

Arrays: TypeAlias = Mapping[str, np.ndarray[Any, Any]]
RESTARTED = (
    "environments begin new episodes with other seeds; unfinished episodes, and experience that waited for an update,"
    " are dropped"
)


class Restorer:
    """Used by the builder. Loads what was learned before into trainers, and logs what it used and what it skipped."""

    def __init__(self, settings: CheckpointSettings, folder: RunFolder, bus: EventBus):
        """folder: open. Made before any environment, which may change the working directory."""
        self.resumed_from: dict[str, Path] = {}  # by behavior: the checkpoint
        self._settings = settings
        self._is_resumed = folder.is_resumed
        self._results_dir = folder.results_dir
        self._working_directory = Path.cwd()
        self._bus = bus

    def restore(
        self, spec: BehaviorSpec, store: CheckpointStore, config: BehaviorConfig, parts: CheckpointParts
    ) -> int:
        """The step to resume from; the parts have what its checkpoint keeps.

        A run that is only initialized from another uses what that one's trainer has learned, and nothing else.
        """
        name, trainer = spec.name, parts.trainer
        if self._is_resumed:
            newest = store.newest_valid()
            for reason in newest.skipped:
                self._bus.log("warning", name, f"a checkpoint was skipped: {reason}")
            if newest.path is not None:
                state, checkpoint = store.load(newest.path)
                restore = partial(parts.restore, state, checkpoint.step)
                self._load(spec, config, state, checkpoint, trainer, restore)
                self.resumed_from[name] = newest.path
                if not self._settings.inference and checkpoint.step < config.max_steps:
                    self._bus.log("info", name, f"resumed at step {checkpoint.step}: {RESTARTED}")
                return checkpoint.step
            self._bus.log("warning", name, "no checkpoint to resume from: this behavior starts over")
        path = self._initial_checkpoint(name, config)
        if path is not None and path.suffix == RAW:
            weights = read_weights(path)
            try:
                trainer.load_weights(weights.arrays, weights.version)
            except ConfigError as error:
                raise CheckpointError(f"{path}: {error}") from error
            self._bus.log("info", name, f"loaded {path}")
        elif path is not None:
            state, checkpoint = read(path)
            self._load(spec, config, state, checkpoint, trainer, partial(trainer.load, state.part(TRAINER)))
        return 0

    def restore_replay(
        self, name: str, folder: BehaviorFolder, config: BehaviorConfig, trainer: Trainer, num_ranks: int
    ) -> State | None:
        """Load the saved replay buffer, where the configuration asks for it; what was loaded, None for nothing.

        Where there is none that fits, the trainer starts with an empty one, and a warning says so. num_ranks: among
        which it can be divided.
        """
        if not self._is_resumed or self._settings.inference or not config.hyperparameters.saves_replay:
            return None
        try:
            replay = read_replay_buffer(folder.replay_buffer, name)
            if num_ranks > 1:
                require_divisible(replay)
            trainer.load_replay(replay)
        except CheckpointError as error:
            self._bus.log("warning", name, f"the replay buffer starts empty: {error}")
            return None
        self._bus.log("info", name, f"loaded {folder.replay_buffer}")
        return replay

    def require_origin(self, name: str, config: BehaviorConfig) -> None:
        """A behavior that will appear can be initialized as configured. Raises CheckpointError."""
        path = None if self._is_resumed else self._initial_checkpoint(name, config)
        if path is not None:
            read_weights(path) if path.suffix == RAW else read(path)

    def _initial_checkpoint(self, name: str, config: BehaviorConfig) -> Path | None:
        """What `init_path` or --initialize-from names: a raw policy, a checkpoint, or the newest one of that run."""
        if config.init_path is not None:
            return initial_checkpoint(self._working_directory / config.init_path, name)
        if self._settings.initialize_from is None:
            return None
        other = RunFolder(self._results_dir, self._settings.initialize_from)
        other.require_exists(name_of("checkpoint_settings.initialize_from"))
        newest = CheckpointStore(other.behavior(name).checkpoints, name, 0).newest_valid()
        if newest.path is None:
            flag = name_of("checkpoint_settings.initialize_from")
            raise CheckpointError(f"{flag} {self._settings.initialize_from}: it has no checkpoint of {name}")
        return newest.path

    def _load(
        self,
        spec: BehaviorSpec,
        config: BehaviorConfig,
        state: State,
        checkpoint: Checkpoint,
        trainer: Trainer,
        restore: Callable[[], None],
    ) -> None:
        name = spec.name
        try:
            _require_fitting(trainer.state().tensors, state.part(TRAINER).tensors, checkpoint)
        except CheckpointError as error:
            if differences := trained_otherwise(checkpoint, spec, config):
                text = f"its checkpoint was trained with {differences}. Use these again, or another folder."
                if "trainer_type" in differences:
                    text += " A policy alone goes on in any trainer: export it raw (export_policies) and name that file"
                    text += " in init_path."
                raise CheckpointError(f"{name}: {text}\n{error}") from error
            raise
        restore()
        if checkpoint.is_from_other_version:
            written_by = checkpoint.program_version
            self._bus.log("warning", name, f"{checkpoint.path} was written by version {written_by}, this is {VERSION}")
        if checkpoint.spec is not None and (misread := misread_before(checkpoint.spec, spec)):
            self._bus.log("warning", name, misread)
        self._bus.log("info", name, f"loaded {checkpoint.path}")


def resumed_step(folder: RunFolder, settings: CheckpointSettings) -> int:
    """The largest step that a behavior of the run has reached, as its checkpoints say; 0 where none resumes.

    Known before there are environments, and so before any checkpoint is loaded. folder: open.
    """
    if not folder.is_resumed or settings.inference:
        return 0
    names = trained_behaviors(folder.path)
    stores = [CheckpointStore(folder.behavior(name).checkpoints, name, 0) for name in names]
    return max((checkpoint.step for store in stores for checkpoint in store.list()), default=0)


def require_continued(folder: Path, behaviors: Collection[str]) -> None:
    """The folder is new, or holds some of these. Raises ConfigError: others would take the run over."""
    held = trained_behaviors(folder)
    if held and not set(held).intersection(behaviors):
        must = f"must be {one_of(map(visible, held))}, which {folder} holds, got {', '.join(map(visible, behaviors))}"
        raise ConfigError(f"behavior: {must}. Choose another folder for another behavior")


def load_trainer(trainer: Trainer, state: State, checkpoint: Checkpoint) -> None:
    """Load a checkpoint's state into the trainer. Raises PluginError, and CheckpointError naming all that differs."""
    part = state.part(TRAINER)
    _require_fitting(trainer.state().tensors, part.tensors, checkpoint)
    trainer.load(part)


def load_actor(actor: SavedActor, state: State, checkpoint: Checkpoint, seed: int, is_greedy: bool) -> Policy:
    """The policy in a checkpoint's state. Raises CheckpointError, naming every array that differs."""
    part = state.part(TRAINER)
    _require_fitting(actor.expected(), actor.found(part), checkpoint)
    return actor.policy(part, seed, is_greedy)


def _require_fitting(expected: Arrays, found: Arrays, checkpoint: Checkpoint) -> None:
    try:
        require_same_keys(expected, found)
    except CheckpointError as error:
        raise CheckpointError(f"{checkpoint.path}: {error}") from error
