"""From a configuration to everything that trains: environments, trainers, stores, restored states."""

from __future__ import annotations

import itertools
import queue
import random
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import torch

from rl_tui.engine import registry
from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.diagnostics import suggest
from rl_tui.engine.config.environment_name import EDITOR, is_of_unity
from rl_tui.engine.config.run import DEVICES, RunConfig
from rl_tui.engine.config.support import find_unsupported_defaults
from rl_tui.engine.config.types import OFF
from rl_tui.engine.errors import ConfigError, HookError, NotSupportedError, PluginError
from rl_tui.engine.export.exporter import PolicyExporter
from rl_tui.engine.learning.full_memory import needing_memory
from rl_tui.engine.learning.policy_copies import MakePolicy
from rl_tui.engine.learning.trainer import Trainer, make_trainer
from rl_tui.engine.running.announcements import (
    describe,
    goal_note,
    max_steps_reached,
    not_there_yet,
    save_traceback,
    small_images_note,
)
from rl_tui.engine.running.behavior import Behavior
from rl_tui.engine.running.block_sizes import BLOCK_ROWS
from rl_tui.engine.running.checkpoint_parts import CheckpointParts
from rl_tui.engine.running.command_ledger import Report
from rl_tui.engine.running.environment_runner import EnvironmentRunner
from rl_tui.engine.running.environments import (
    NamedEnvironment,
    make_pool,
    make_pool_apart,
    named_environments,
    quota_of,
    settings_of,
    start_note,
)
from rl_tui.engine.running.evaluation.evaluator import Evaluator
from rl_tui.engine.running.hooks import Hooks
from rl_tui.engine.running.learner import Learner
from rl_tui.engine.running.lessons.follower import LessonFollower
from rl_tui.engine.running.lessons.lessons import Lessons
from rl_tui.engine.running.machine.memory import MemoryBudget, available_bytes, size_text
from rl_tui.engine.running.restoring import Restorer, require_continued, resumed_step
from rl_tui.engine.running.saver import Files, SaveJob, Saver
from rl_tui.engine.running.summaries import LearnerSettings
from rl_tui.engine.running.threads import Control, UiPriority
from rl_tui.engine.running.training_analytics import describe_training
from rl_tui.engine.running.watching.viewer import WatchTarget
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.sampling.pools.worker_process import start_seconds
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import BehaviorStarted
from rl_tui.engine.specs import BehaviorSpec
from rl_tui.engine.storage.behavior_folder import BehaviorFolder
from rl_tui.engine.storage.checkpoints import CheckpointStore
from rl_tui.engine.storage.earlier_returns import earlier_returns
from rl_tui.engine.storage.run_folder import RunFolder

LATE_SEEDS = 1000  # more than any run has behaviors when it starts, and any environment later
ENVIRONMENT_SEEDS = 1_000_003  # between environments: ML-Agents gives copy i of one seed + i, and none may be shared
RANDOM_SEEDS = 10_000  # ML-Agents draws a seed from 0 to 9999 when none is given


def run_seed(config: RunConfig) -> int:
    """The configured seed, or a random one."""
    seed = config.env_settings.seed
    return seed if seed >= 0 else random.SystemRandom().randrange(RANDOM_SEEDS)


def device_of(config: RunConfig) -> torch.device:
    """The configured device, or cuda where there is one, with its index where it has one.

    Raises ConfigError when it cannot be used.
    """
    name = config.torch_settings.device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.zeros(1, device=torch.device(name)).device
    except (RuntimeError, AssertionError) as error:
        reason = "torch was built without it" if isinstance(error, NotImplementedError) else str(error).splitlines()[0]
        is_unknown = reason.startswith("Expected one of")  # torch knows no such kind
        text = f'must be {DEVICES}, got "{name}"' if is_unknown else f"{name} is not available: {reason}"
        raise ConfigError(f"torch_settings.device: {text}") from error


def derived_seed(*parts: int) -> int:
    """An independent seed for every combination of parts."""
    return int(np.random.SeedSequence(list(parts)).generate_state(1)[0])


@dataclass(frozen=True, slots=True)
class Place:
    """Where a behavior acts: the environment of this index in the run. target: how its behaviors are watched."""

    index: int
    source: EnvironmentSource
    pool: EnvironmentPool
    control: Control
    saver: Saver
    target: WatchTarget


class Builder:
    """Makes the environments and behaviors of a run. Used by the coordinator while the run starts, and by the threads
    of collectors when a behavior appears, one at a time.

    Its public attributes, by behavior, grow when one appears: other threads look up names, or iterate over copies.
    """

    def __init__(
        self,
        config: RunConfig,
        folder: RunFolder,
        seed: int,
        device: torch.device,
        bus: EventBus,
        report: Report,
        ui_priority: UiPriority,
        hooks: Hooks,
        lessons: Lessons,
        source: EnvironmentSource | None = None,
        *,
        is_inline: bool = False,
    ):
        """report: where learners answer commands. source: of the environments, instead of those that the configuration
        names. is_inline: they are made in the caller's thread, however long that takes, and the folder's behaviors must
        be theirs.
        """
        self.files: dict[str, Files] = {}
        self.learners: dict[str, Learner] = {}
        self.watch_targets: dict[str, WatchTarget] = {}
        self._config = config
        self._folder = folder
        self._seed = seed
        self._device = device
        self._bus = bus
        self._report = report
        self._ui_priority = ui_priority
        self._hooks = hooks
        self._lessons = lessons
        self._source = source
        self._is_inline = is_inline
        self._is_training = not config.checkpoint_settings.inference
        self._restorer = Restorer(config.checkpoint_settings, folder, bus)
        self._started_at = time.monotonic()
        num_envs, env = config.env_settings.num_envs, config.env_settings.environment
        num_trained = num_envs * (1 if isinstance(env, str) else len(env))
        self._copies_apart = itertools.count(num_trained, num_envs)  # numbers of copies for evaluations
        self._lock = threading.Lock()

    @property
    def resumed_from(self) -> Mapping[str, Path]:
        """By behavior that continues: the checkpoint it was restored from."""
        return self._restorer.resumed_from

    def runners(self, saver: Saver) -> list[EnvironmentRunner]:
        """One runner for the environment of all behaviors, or one for each behavior's own."""
        is_wanted = self._is_training and self._config.env_settings.training_analytics
        analytics = describe_training(self._config, self._device.type) if is_wanted else None
        if self._source is not None:
            environments: Sequence[NamedEnvironment] = [NamedEnvironment(self._source, tuple(self._config.behaviors))]
        else:
            environments = named_environments(self._config, self._seed, self._folder.run_logs, analytics)
        return [self._runner(environment, index, saver) for index, environment in enumerate(environments)]

    def _runner(self, environment: NamedEnvironment, index: int, saver: Saver) -> EnvironmentRunner:
        settings, source = self._config.env_settings, environment.source
        limits_itself = settings.num_workers > 0 or is_of_unity(source.env)
        follower = LessonFollower(self._lessons)

        def made() -> EnvironmentPool:
            step = self._reached_step
            pool = make_pool(source, settings, self._folder.run_logs, step)
            follower.prepare(pool, step)
            return pool

        return EnvironmentRunner(
            source,
            environment.behaviors,
            made,
            _EnvironmentBehaviors(self, environment, index, saver),
            self._seed + index * ENVIRONMENT_SEEDS,
            self._bus,
            Control(self._ui_priority),
            follower,
            None if limits_itself or self._is_inline else start_seconds(settings.timeout_wait),
            start_note(source.env, settings),
        )

    @property
    def _reached_step(self) -> int:
        """The largest step of a behavior by now; before there are any, the one that the run resumes from."""
        steps = [learner.step for learner in list(self.learners.values())]
        return max(steps) if steps else resumed_step(self._folder, self._config.checkpoint_settings)

    def require_behaviors(self, environment: NamedEnvironment, specs: Mapping[str, BehaviorSpec]) -> None:
        """A warning names the behaviors of the file that are not there yet. Raises ConfigError where none is."""
        if self._is_inline:
            require_continued(self._folder.path, specs)
        missing = [name for name in environment.behaviors if name not in specs]
        if not missing:
            return
        env, found = environment.source.env, f"it has {', '.join(specs) or 'none'}"
        is_some_here = len(missing) < len(environment.behaviors) or not specs  # without any, all are to appear
        may_train = self._config.default_settings is not None or is_some_here
        others = [name for name in specs if name not in environment.behaviors]  # that a name of the file may stand for
        hint = suggest(missing[0], others)
        if not may_train or environment.source.has_one_behavior:
            advice = (
                " For several environments in one run, make env_settings.env a mapping from behavior to environment."
            )
            if others and not environment.source.has_one_behavior:
                advice = f" Add an entry for {' and '.join(others)}, or default_settings."
            raise ConfigError(f"behaviors.{missing[0]}: {env} has no such behavior, {found}.{hint or advice}")
        for name in missing:
            self._restorer.require_origin(name, settings_of(self._config, name))
        if env == EDITOR and not specs:
            return  # it has not connected
        self._bus.log("warning", "run", f"{env} {not_there_yet(missing, has_any=bool(specs))}{hint and f'.{hint}'}")

    def watch_target(self, source: EnvironmentSource) -> WatchTarget:
        """The behaviors of one environment are watched together; `behavior` adds them."""
        seed, timeout = derived_seed(self._seed, len(self.watch_targets), 4), self._config.env_settings.timeout_wait
        return WatchTarget(source, {}, seed, timeout, self._folder.run_logs, self._folder.output, self._lessons)

    def behavior(self, spec: BehaviorSpec, place: Place, late_number: int | None = None) -> Behavior:
        """One behavior with all it needs. late_number: of those that have appeared in its environment, from 0; None at
        the start. Raises RlTuiError."""
        with self._lock:
            index = len(self.learners) if late_number is None else (place.index + 1) * LATE_SEEDS + late_number
            if spec.name in self.learners:
                raise ConfigError(f"behaviors.{spec.name}: two environments of this run have a behavior of this name")
            with needing_memory(f"behaviors.{spec.name}: its trainer"):
                behavior = self._behavior(spec, place, index, is_late=late_number is not None)
            self.watch_targets[spec.name] = place.target
            self.learners[spec.name] = behavior.learner
        return behavior

    def _behavior(self, spec: BehaviorSpec, place: Place, index: int, *, is_late: bool) -> Behavior:
        config, source = settings_of(self._config, spec.name), place.source
        if spec.name not in self._config.behaviors and (unsupported := find_unsupported_defaults(self._config)):
            raise NotSupportedError("\n".join(unsupported))
        self._bus.log("debug", spec.name, describe(spec))
        trainer = self._trainer(spec, config, index)
        is_greedy, seed = config.network_settings.deterministic, derived_seed(self._seed, index, 1)
        policy = trainer.make_policy(seed, is_greedy=True) if is_greedy else trainer.make_policy(seed)
        to_watch = trainer.policy_maker(derived_seed(place.target.seed, False))
        files = self._files(spec, config, trainer, to_watch)
        evaluator = self._evaluator(spec, place, config, index, trainer)
        self._note_observations(spec, config, trainer.num_parameters)
        settings = LearnerSettings(
            behavior=spec.name,
            config=config,
            is_training=self._is_training,
            started_at=self._started_at,
            metrics=source.metrics,
            clock=place.control.running_seconds,
            hooks=self._hooks,
            lessons=self._lessons if self._lessons.has_any else None,
            num_agents=place.pool.num_agents[spec.name],
        )
        parts = CheckpointParts(settings, trainer, self._bus)
        step = self._restorer.restore(spec, files.store, config, parts)
        if not self._is_training:
            step = 0  # of what is played
        elif step >= config.max_steps:
            key = f"behaviors.{spec.name}" if spec.name in self._config.behaviors else "default_settings"
            self._bus.log("warning", spec.name, max_steps_reached(key, step, config.max_steps))
        has_replay = self._restorer.restore_replay(spec.name, files.folder, config, trainer)
        policy.load(trainer.weights())
        if parts.policy.values:
            policy.load_state(parts.policy)
        learner = Learner(settings, parts, place.saver, self._bus, self._report, step, evaluator)
        self.files[spec.name] = files
        place.target.behaviors[spec.name] = to_watch, learner.weights.latest  # no learner, which would outlive the run
        if step and self._is_training and files.exporter and _lacks_export(files.folder, config, step):
            put = place.saver.put if is_late else place.saver.put_first
            put(SaveJob(spec.name, step, trainer.weights(), None, "interval", None))
        keeps_steps = self._is_training and trainer.replay_bytes > 0
        warmup_steps = config.hyperparameters.warmup_steps if keeps_steps and not has_replay else 0
        self._bus.publish(
            BehaviorStarted(
                behavior=spec.name,
                algorithm=config.trainer_type,
                environment=source.env,
                step=step,
                max_steps=config.max_steps if self._is_training else 0,
                num_agents=place.pool.num_agents[spec.name],
                num_parameters=trainer.num_parameters,
                threaded=config.threaded,
                replay_steps=config.hyperparameters.replay_steps if keeps_steps else 0,
                replay_bytes=trainer.replay_bytes if keeps_steps else 0,
                first_update_step=step + warmup_steps if warmup_steps else 0,
                headline_metrics=tuple(config.hyperparameters.headline_metrics),
                reward_threshold=spec.reward_threshold,
                earlier_returns=earlier_returns(self._folder.events, spec.name) if step else (),
            )
        )
        if self._is_training:
            learner.hyperparameters.publish()
        queue_size = max(1, -(-trainer.rows_per_update // BLOCK_ROWS))  # one rollout; more would only be staler
        return Behavior(
            spec=spec,
            learner=learner,
            policy=policy,
            time_horizon=trainer.time_horizon,
            summary_freq=config.summary_freq,
            control=place.control,
            blocks=queue.Queue(queue_size) if config.threaded and self._is_training else None,
            save_traceback=partial(self._save_traceback, spec.name),
        )

    def _save_traceback(self, behavior: str, error: PluginError | HookError) -> None:
        title = f"{behavior} failed: {error}"
        save_traceback(self._bus, behavior, behavior, self._folder.output, title, error.detail)

    def _files(self, spec: BehaviorSpec, config: BehaviorConfig, trainer: Trainer, make_policy: MakePolicy) -> Files:
        folder = self._folder.add_behavior(spec.name)
        store = CheckpointStore(folder.checkpoints, spec.name, config.keep_checkpoints, spec)
        store.open()
        exporter, why_not, name = None, "", config.trainer_type
        try:
            module = trainer.policy_module()
        except NotSupportedError as error:
            why_not = f"{registry.title('trainers', name)}: its policy cannot be exported: {error}"
            if self._is_training:
                self._bus.log("warning", spec.name, why_not)
        else:
            exporter = PolicyExporter(name, module, make_policy, config.export_policies)
        return Files(folder, store, exporter, config.export_interval is not None, why_not)

    def _trainer(self, spec: BehaviorSpec, config: BehaviorConfig, index: int) -> Trainer:
        """With memory for its replay buffer, where it trains. Raises ConfigError."""
        with _named(f"behaviors.{spec.name}"):
            trainer = make_trainer(spec, config, derived_seed(self._seed, index, 0), self._device)
        if self._is_training and trainer.replay_bytes:
            steps, size = config.hyperparameters.replay_steps, trainer.replay_bytes
            self._budget.claim(spec.name, steps, size, is_saved=config.hyperparameters.saves_replay)
            self._bus.log("info", spec.name, f"replay buffer: {steps:,} steps, {size_text(size)}")
        return trainer

    def _note_observations(self, spec: BehaviorSpec, config: BehaviorConfig, num_parameters: int) -> None:
        """Log how goals and small images are used."""
        if (note := small_images_note(spec, config.network_settings)) is not None:
            self._bus.log("info", spec.name, note)
        key, has = ("network_settings", "goal_conditioning_type"), self._config.source.has
        is_chosen = has(("behaviors", spec.name, *key)) or has(("default_settings", *key))
        noted = goal_note(spec, config.network_settings, num_parameters, is_chosen)
        if noted is not None and self._is_training:
            level, text = noted
            self._bus.log(level, spec.name, text)

    def _evaluator(
        self, spec: BehaviorSpec, place: Place, config: BehaviorConfig, index: int, trainer: Trainer
    ) -> Evaluator | None:
        settings, source = config.evaluation, place.source
        if settings is None or settings.interval == OFF:
            return None
        if source.env == EDITOR:
            return None  # there is no second one, as a warning says
        if not self._is_training:
            self._bus.log("warning", spec.name, "evaluation: no effect with --inference, the policy stays as it is")
            return None
        environment = self._config.env_settings
        num_copies = min(environment.num_envs, settings.episodes)
        own_source = replace(source, first_copy=next(self._copies_apart))
        with _named(f"behaviors.{spec.name}.evaluation"):
            policy = trainer.policy_maker(derived_seed(self._seed, index, 2))(settings.deterministic)
        return Evaluator(
            settings,
            spec.name,
            lambda: make_pool_apart(
                own_source, own_source.make, num_copies, environment.timeout_wait, quota_of(environment)
            ),
            policy,
            derived_seed(self._seed, index, 3),
            self._bus,
            place.target.behaviors,
            self._lessons,
        )

    @cached_property
    def _budget(self) -> MemoryBudget:
        return MemoryBudget(available_bytes())


class _EnvironmentBehaviors:
    """Implements BehaviorMaker for the environment of this index."""

    def __init__(self, builder: Builder, environment: NamedEnvironment, index: int, saver: Saver):
        self._builder = builder
        self._environment = environment
        self._index = index
        self._saver = saver
        self._num_late = 0
        self._target = builder.watch_target(environment.source)

    def make_first(self, pool: EnvironmentPool, control: Control) -> Mapping[str, Behavior]:
        """Those that the environments have when they have just been made."""
        self._builder.require_behaviors(self._environment, pool.specs)
        place = self._place(pool, control)
        return {name: self._builder.behavior(spec, place) for name, spec in pool.specs.items()}

    def make_late(self, spec: BehaviorSpec, pool: EnvironmentPool, control: Control) -> Behavior:
        """One that has appeared since."""
        behavior = self._builder.behavior(spec, self._place(pool, control), self._num_late)
        self._num_late += 1
        return behavior

    def _place(self, pool: EnvironmentPool, control: Control) -> Place:
        return Place(self._index, self._environment.source, pool, control, self._saver, self._target)


@contextmanager
def _named(key: str) -> Iterator[None]:
    """What is raised in here about the configuration begins with that key."""
    try:
        yield
    except (ConfigError, NotSupportedError) as error:
        raise type(error)(f"{key}: {error}") from error


def _lacks_export(folder: BehaviorFolder, config: BehaviorConfig, step: int) -> bool:
    """Whether the process that saved this checkpoint ended before it had exported its policy."""
    exports = [folder.export(step), *(folder.policy(step, kind) for kind in config.export_policies)]
    is_last = step >= config.max_steps
    if is_last:
        exports.append(folder.final_export)
    is_exported = config.export_interval is None or (is_last and config.export_interval != OFF)
    return is_exported and not all(path.exists() for path in exports)
