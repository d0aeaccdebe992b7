"""From a configuration to everything that trains: environments, trainers, stores, restored states."""

from __future__ import annotations

import queue
import random
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from engine import registry
from engine.config import RunConfig
from engine.errors import CheckpointError, ConfigError
from engine.learning.trainers.base import Trainer
from engine.running.behavior import Behavior
from engine.running.checkpoint_format import Checkpoint, read
from engine.running.checkpoints import CheckpointStore, require_same_keys
from engine.running.export import PolicyExporter
from engine.running.learner import Learner, LearnerSettings
from engine.running.run_folder import RunFolder
from engine.running.saver import Files, Saver
from engine.running.source import BLOCK_ROWS, Source
from engine.running.workers import Courtesy
from engine.sampling.environments.factory import EnvironmentSource
from engine.sampling.pools.base import EnvironmentPool
from engine.sampling.pools.process import ProcessPool
from engine.sampling.pools.serial import SerialPool
from engine.session.bus import EventBus
from engine.session.messages import BehaviorStarted, LogEmitted
from engine.settings import BehaviorConfig
from engine.specs import BehaviorSpec, State
from engine.version import VERSION

RANDOM_SEEDS = 10_000  # ML-Agents draws a seed from 0 to 9999 when none is given


def run_seed(config: RunConfig) -> int:
    """The seed that was asked for, or a random one."""
    seed = config.env_settings.seed
    return seed if seed >= 0 else random.SystemRandom().randrange(RANDOM_SEEDS)


def device_of(config: RunConfig) -> torch.device:
    """The device that was asked for, or cuda where there is one, with its index where it has one.

    Raises ConfigError when it cannot be used.
    """
    name = config.torch_settings.device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.zeros(1, device=torch.device(name)).device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"torch_settings.device: {name} cannot be used here: {reason}") from error


def derived_seed(*parts: int) -> int:
    """An independent seed for every combination of parts."""
    return int(np.random.SeedSequence(list(parts)).generate_state(1)[0])


class Builder:
    """Makes the sources of a run. Used by the coordinator while the run starts; `files` and `learners` fill up."""

    def __init__(
        self,
        config: RunConfig,
        folder: RunFolder,
        seed: int,
        device: torch.device,
        bus: EventBus,
        courtesy: Courtesy,
    ):
        self.files: dict[str, Files] = {}
        self.learners: dict[str, Learner] = {}
        self._config = config
        self._folder = folder
        self._seed = seed
        self._device = device
        self._bus = bus
        self._courtesy = courtesy
        self._started_at = time.monotonic()

    def sources(self, saver: Saver) -> list[Source]:
        """One source for the one environment, or one for every behavior's own."""
        settings = self._config.env_settings
        match settings.env:
            case None:
                raise ConfigError(
                    "env_settings.env: no environment is named. Name one in the file or with --env,"
                    " e.g. gymnasium:CartPole-v1."
                )
            case str(env):
                return [self._source(env, settings.env_kwargs, list(self._config.behaviors), 0, saver)]
            case environments:
                return [
                    self._source(env, _kwargs_of(settings.env_kwargs, name), [name], index, saver)
                    for index, (name, env) in enumerate(environments.items())
                ]

    def _source(self, env: str, kwargs: Mapping[str, object], names: list[str], index: int, saver: Saver) -> Source:
        """names: the behaviors that the file gives settings for; a Gymnasium environment takes the only one."""
        settings = self._config.env_settings
        source = EnvironmentSource(env, names[0] if names else "", kwargs)

        def make_pool() -> EnvironmentPool:
            if settings.num_workers:
                workers = min(settings.num_workers, settings.num_envs)
                return ProcessPool(source, settings.num_envs, workers, settings.timeout_wait, self._folder.run_logs)
            return SerialPool(env, source.make, settings.num_envs)

        def make_behaviors(pool: EnvironmentPool) -> dict[str, Behavior]:
            for name in names:
                if name not in pool.specs:
                    raise ConfigError(
                        f"behaviors.{name}: {env} has no such behavior, it has {', '.join(pool.specs)}. For several"
                        " environments in one run, make env_settings.env a mapping from behavior to environment."
                    )
            return {name: self._behavior(spec, env, pool, saver) for name, spec in pool.specs.items()}

        # ML-Agents: environment i gets seed + i; apart from each other, sources of one run must not repeat those
        seed = self._seed + index * 1_000_003
        return Source(env, make_pool, make_behaviors, seed, self._bus, self._courtesy)

    def _behavior(self, spec: BehaviorSpec, env: str, pool: EnvironmentPool, saver: Saver) -> Behavior:
        config = self._settings_of(spec.name)
        checkpoint_settings = self._config.checkpoint_settings
        index = len(self.learners)
        folder = self._folder.add_behavior(spec.name)
        store = CheckpointStore(folder.checkpoints, spec.name, config.keep_checkpoints, spec)
        store.open()
        self.files[spec.name] = Files(folder, store, PolicyExporter(spec, config.network_settings.activation))
        trainer: Trainer = registry.load("trainers", config.trainer_type)(
            spec, config, derived_seed(self._seed, index, 0), self._device
        )
        policy = trainer.make_policy(derived_seed(self._seed, index, 1))
        step, restored = self._restore(spec.name, store, config, trainer)
        policy.load(trainer.weights())
        if restored.part("policy").values:
            policy.load_state(restored.part("policy"))
        is_training = not checkpoint_settings.inference
        learner_settings = LearnerSettings(spec.name, config, is_training, self._started_at, self._courtesy.give_way)
        learner = Learner(learner_settings, trainer, saver, self._bus, step, policy.state())
        learner.restore_hyperparameters(restored)
        self.learners[spec.name] = learner
        self._bus.publish(
            BehaviorStarted(
                behavior=spec.name,
                algorithm=config.trainer_type,
                environment=env,
                step=step,
                max_steps=config.max_steps,
                num_agents=pool.num_agents[spec.name],
                num_parameters=trainer.num_parameters,
                threaded=config.threaded,
            )
        )
        learner.tell_hyperparameters()
        waiting = max(1, -(-trainer.rows_per_update // BLOCK_ROWS))  # one rollout in flight; more would only be staler
        return Behavior(
            learner=learner,
            policy=policy,
            time_horizon=config.time_horizon,
            summary_freq=config.summary_freq,
            inbox=queue.Queue(waiting) if config.threaded and is_training else None,
        )

    def _settings_of(self, behavior: str) -> BehaviorConfig:
        config = self._config.behaviors.get(behavior) or self._config.default_settings
        if config is None:
            known = ", ".join(self._config.behaviors) or "none"
            raise ConfigError(
                f"behaviors: the environment has a behavior {behavior!r}, the file has {known}."
                " Add an entry for it, or default_settings."
            )
        return config

    def _restore(
        self, name: str, store: CheckpointStore, config: BehaviorConfig, trainer: Trainer
    ) -> tuple[int, State]:
        """The step to go on from, and what is resumed, of which the trainer has taken its part.

        A run that is only initialized from another takes over what that one learned, and nothing else.
        """
        settings = self._config.checkpoint_settings
        if settings.resume:
            newest = store.newest_valid()
            for reason in newest.skipped:
                self._warn(name, f"a checkpoint was skipped: {reason}")
            if newest.path is None:
                self._warn(name, "no checkpoint to resume from: this behavior starts anew")
                return 0, State()
            state, checkpoint = store.load(newest.path)
            self._load(name, state, checkpoint, trainer)
            return checkpoint.step, state
        path = self._initial_checkpoint(name, config)
        if path is not None:
            self._load(name, *read(path), trainer)
        return 0, State()

    def _initial_checkpoint(self, name: str, config: BehaviorConfig) -> Path | None:
        """What `init_path` or --initialize-from names: a path, or the newest checkpoint of that run."""
        if config.init_path is not None:
            return Path(config.init_path)
        settings = self._config.checkpoint_settings
        if settings.initialize_from is None:
            return None
        other = RunFolder(Path(settings.results_dir), settings.initialize_from)
        other.require_exists("--initialize-from")
        newest = CheckpointStore(other.behavior(name).checkpoints, name, 0).newest_valid()
        if newest.path is None:
            raise CheckpointError(f"--initialize-from {settings.initialize_from}: it has no checkpoint of {name}")
        return newest.path

    def _load(self, name: str, state: State, checkpoint: Checkpoint, trainer: Trainer) -> None:
        part = state.part("trainer")
        try:
            require_same_keys(trainer.state().tensors, part.tensors)
        except CheckpointError as error:
            raise CheckpointError(f"{checkpoint.path}: {error}") from error
        trainer.load(part)
        if checkpoint.is_from_other_version:
            written_by = checkpoint.program_version
            self._warn(name, f"{checkpoint.path} was written by version {written_by}, this is {VERSION}")
        self._bus.publish(LogEmitted("info", name, f"loaded {checkpoint.path}"))

    def _warn(self, name: str, message: str) -> None:
        self._bus.publish(LogEmitted("warning", name, message))


def _kwargs_of(kwargs: Mapping[str, object], behavior: str) -> Mapping[str, object]:
    """With an environment per behavior, `env_kwargs` is keyed by behavior too."""
    own = kwargs.get(behavior, {})
    assert isinstance(own, Mapping)
    return own
