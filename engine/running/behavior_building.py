"""One behavior of a run, from its spec to all that trains it."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial

import torch

from rl_tui.engine import registry
from rl_tui.engine.config.behavior import BehaviorConfig, EvaluationSettings, SelfPlaySettings
from rl_tui.engine.config.environment_name import EDITOR
from rl_tui.engine.config.environments import has_agents
from rl_tui.engine.config.naming import switched_on
from rl_tui.engine.config.support import find_unsupported_defaults
from rl_tui.engine.config.types import AUTO, OFF
from rl_tui.engine.errors import ConfigError, HookError, NotSupportedError, PluginError
from rl_tui.engine.export.exporter import PolicyExporter
from rl_tui.engine.learning.demonstrations import Demonstrations
from rl_tui.engine.learning.feature_layout import FeatureLayout
from rl_tui.engine.learning.full_memory import needing_memory
from rl_tui.engine.learning.policies import CPU
from rl_tui.engine.learning.policy_copies import MakePolicy
from rl_tui.engine.learning.trainer import Trainer, make_trainer
from rl_tui.engine.running.announcements import (
    describe,
    goal_note,
    max_steps_reached,
    save_traceback,
    small_images_note,
)
from rl_tui.engine.running.behavior import Behavior
from rl_tui.engine.running.checkpoint_parts import CheckpointParts
from rl_tui.engine.running.collection import BLOCK_ROWS
from rl_tui.engine.running.device_choice import SECONDS, Devices, Tasks, choose_devices, named_devices, on_device
from rl_tui.engine.running.device_trials import DeviceTrials
from rl_tui.engine.running.environments import make_pool_apart, quota_of, settings_of
from rl_tui.engine.running.evaluation.evaluator import Evaluator
from rl_tui.engine.running.evaluation.match import Match, make_match
from rl_tui.engine.running.evaluation.named_opponents import OPPONENT, find_opponent
from rl_tui.engine.running.evaluation.opponents import OldestOpponent
from rl_tui.engine.running.games.rules import Rules
from rl_tui.engine.running.imitated import opened_for
from rl_tui.engine.running.learner import Learner
from rl_tui.engine.running.machine.memory import size_text
from rl_tui.engine.running.ranks.messages import Restored
from rl_tui.engine.running.ranks.replay_parts import shared_out
from rl_tui.engine.running.run_setup import RunSetup, derived_seed
from rl_tui.engine.running.saver import Files, SaveJob
from rl_tui.engine.running.self_play.live_league import Leagues, LiveLeague, longest_game
from rl_tui.engine.running.summaries import LearnerSettings
from rl_tui.engine.running.teacher import read_teacher
from rl_tui.engine.running.threads import Control
from rl_tui.engine.running.watching.viewer import WatchTarget
from rl_tui.engine.sampling.collecting.pool import CollectingPool
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.sampling.team_policies import TeamPolicies
from rl_tui.engine.session.messages import BehaviorStarted, LogLevel
from rl_tui.engine.specs import BehaviorSpec, Policy, State
from rl_tui.engine.storage.behavior_folder import BehaviorFolder
from rl_tui.engine.storage.checkpoints import CheckpointStore
from rl_tui.engine.storage.device_choices import DeviceKinds
from rl_tui.engine.storage.earlier_returns import earlier_returns


@dataclass(frozen=True, slots=True)
class Place:
    """Where a behavior acts: the environment of this index in the run. target: how its behaviors are watched. leagues:
    of those that play each other there."""

    index: int
    source: EnvironmentSource
    pool: EnvironmentPool
    control: Control
    target: WatchTarget
    leagues: Leagues


class BehaviorBuilder:
    """Used by one thread. Makes one behavior, in the order of `build`."""

    def __init__(self, run: RunSetup, spec: BehaviorSpec, place: Place, index: int, *, is_late: bool):
        """index: of the behavior in the run, of which its seeds are made. is_late: the run trains already."""
        self._run, self._spec, self._place, self._index, self._is_late = run, spec, place, index, is_late
        self._config = settings_of(run.config, spec.name)
        self._device = "cpu"

    def build(self) -> Behavior:
        """The behavior, as its folder and the configuration have it. Raises RlTuiError."""
        name = self._spec.name
        self._require_supported()
        with needing_memory(f"behaviors.{name}: its trainer"):
            trainer = self._trainer()
            if self._run.is_training and (teacher := self._learn_from_others(trainer)):
                self._run.bus.log("info", name, f"the teacher is {teacher}")
            league = self._league(trainer)
            policy = self._acting_policy(trainer)
            to_watch = trainer.policy_maker(derived_seed(self._place.target.seed, False))
            files = self._files(trainer, to_watch) if self._run.role.leads else None
            evaluator = self._evaluator(trainer)
            self._note_observations(trainer.num_parameters)
            settings = self._settings(league)
            parts = CheckpointParts(settings, trainer, self._run.bus)
            step, has_replay = self._restore(files, parts)
            if step and not self._run.role.leads:
                policy = self._acting_policy(trainer, step)  # it must not draw again what it drew before
            policy.load(trainer.weights())
            if parts.policy.values:
                policy.load_state(parts.policy)
            learner = Learner(settings, parts, self._run.saver, self._run.bus, self._run.report, step, evaluator)
            watched = to_watch, learner.weights.latest  # no learner, which would outlive the run
            self._place.target.behaviors[name] = watched
            if files is not None:
                self._run.files[name] = files
                self._export_what_is_missing(files, trainer, step)
        self._announce(trainer, step, has_replay)
        if self._run.is_training:
            learner.hyperparameters.publish()
        return self._behavior(learner, policy, trainer, league)

    def _require_supported(self) -> None:
        run = self._run
        if self._spec.name not in run.config.behaviors and (unsupported := find_unsupported_defaults(run.config)):
            raise NotSupportedError("\n".join(unsupported))
        run.bus.log("debug", self._spec.name, describe(self._spec))

    def _trainer(self) -> Trainer:
        """On its device, with memory for its replay buffer, where it trains. Raises ConfigError."""
        run, name, config = self._run, self._spec.name, self._config
        devices = self._devices()
        self._device = str(devices.updates)
        with _named(f"behaviors.{name}"):
            seed, sync = derived_seed(run.seed, self._index, 0), run.role.make_sync()
            trainer = make_trainer(self._spec, config, seed, devices.updates, sync)
        if devices.acts != CPU:
            trainer.act_on(devices.acts)
        if run.is_training and trainer.replay_bytes:
            steps, size = config.hyperparameters.replay_steps, trainer.replay_bytes
            run.budget.claim(name, steps, size, self._num_copies)
            run.bus.log("info", name, f"replay buffer: {steps:,} steps, {size_text(size)}")
        return trainer

    @property
    def _num_copies(self) -> int:
        """Of this rank's replay buffer, for a checkpoint: rank 0 has the parts of all, and joins them."""
        role = self._run.role
        if not self._config.hyperparameters.saves_replay:
            return 0
        return 2 * role.size if role.leads and role.has_others else 1

    def _devices(self) -> Devices:
        """Where it updates and acts. With `auto`, rank 0 chooses the kind of device for all ranks."""
        run, tasks = self._run, self._tasks
        if run.config.torch_settings.device != AUTO:
            layout = FeatureLayout.of(self._spec.observations, self._config.network_settings)
            return named_devices(run.device, layout, tasks)
        return on_device(run.role.share(DeviceKinds, lambda: self._choose_devices(tasks).kinds), run.device, tasks)

    @property
    def _tasks(self) -> Tasks:
        pool = self._place.pool
        is_here = not (self._learns_offline or isinstance(pool, CollectingPool))
        return Tasks(self._run.is_training, max(1, pool.num_agents.get(self._spec.name, 1)) if is_here else 0)

    def _choose_devices(self, tasks: Tasks) -> Devices:
        run, name = self._run, self._spec.name
        trials = DeviceTrials(self._spec, self._config, tasks.num_agents, self._trial_trainer)
        seconds = SECONDS / max(1, len(run.config.behaviors))

        def log(level: LogLevel, text: str) -> None:
            run.bus.log(level, name, text)

        return choose_devices(name, run.device, run.folder, tasks, trials, seconds, log)

    def _trial_trainer(self, config: BehaviorConfig, device: torch.device) -> Trainer:
        """One that is only timed."""
        trainer = make_trainer(self._spec, config, 0, device)
        if self._run.is_training:
            self._learn_from_others(trainer)
        return trainer

    def _learn_from_others(self, trainer: Trainer) -> str:
        """Give it demonstrations to learn from, and a teacher; the path of that one, "" without. Raises RlTuiError."""
        trainer.use_demonstrations(self._demonstrations)
        found = read_teacher(self._spec, self._config, derived_seed(self._run.seed, self._index, 4))
        if found is None:
            return ""
        policy, source = found
        trainer.use_teacher(policy)
        return source

    @cached_property
    def _demonstrations(self) -> Mapping[str, Demonstrations]:
        """What it imitates, by path. Raises DemonstrationError."""
        return opened_for(self._spec, self._config, partial(self._run.bus.log, "info", self._spec.name))

    def _acting_policy(self, trainer: Trainer, *step: int) -> Policy:
        """The one that collects. step: where it goes on, if no checkpoint keeps its generator."""
        policy = self._make_policy(trainer, derived_seed(self._run.seed, self._index, 1, *step))
        return policy if self._self_play is None else TeamPolicies(policy, longest_game(self._self_play))

    def _make_policy(self, trainer: Trainer, seed: int) -> Policy:
        is_greedy = self._config.network_settings.deterministic
        return trainer.make_policy(seed, is_greedy=True) if is_greedy else trainer.make_policy(seed)

    @property
    def _self_play(self) -> SelfPlaySettings | None:
        return self._config.self_play if self._run.is_training and not self._learns_offline else None

    def _league(self, trainer: Trainer) -> LiveLeague | None:
        """None without self-play."""
        if self._self_play is None:
            return None
        seed, index, make, step = self._run.seed, self._index, self._make_policy, self._run.step

        def make_policy(number: int) -> Policy:
            return make(trainer, derived_seed(seed, index, 5, step, number))

        leagues, name = self._place.leagues, self._spec.name
        leagues.of[name] = LiveLeague(self._self_play, leagues.rotation, derived_seed(seed, index, 6), make_policy)
        return leagues.of[name]

    def _files(self, trainer: Trainer, make_policy: MakePolicy) -> Files:
        """Where it is saved and exported; a warning says why it cannot be exported."""
        run, spec, config = self._run, self._spec, self._config
        folder = run.folder.add_behavior(spec.name)
        store = CheckpointStore(folder.checkpoints, spec.name, config.keep_checkpoints, spec)
        store.open()
        exporter, why_not, name = None, "", config.trainer_type
        try:
            module = trainer.policy_module()
        except NotSupportedError as error:
            why_not = f"{registry.title('trainers', name)}: its policy cannot be exported: {error}"
            if run.is_training:
                run.bus.log("warning", spec.name, why_not)
        else:
            exporter = PolicyExporter(name, module, make_policy, config.export_policies)
        return Files(folder, store, exporter, config.export_interval is not None, why_not)

    def _evaluator(self, trainer: Trainer) -> Evaluator | None:
        """In environments of its own; None where it is not evaluated."""
        run, place, settings = self._run, self._place, self._config.evaluation
        if settings is None or settings.interval == OFF or not run.role.leads:
            return None
        if place.source.env == EDITOR:
            return None  # there is no second one, as a warning says
        if not has_agents(place.source.env):
            return None  # as a warning says
        if not run.is_training:
            inference = switched_on("checkpoint_settings.inference")
            text = f"evaluation: no effect with {inference}, the policy stays as it is"
            run.bus.log("warning", self._spec.name, text)
            return None
        environment = run.config.env_settings
        num_copies = min(environment.num_envs, settings.episodes)
        own_source = replace(place.source, first_copy=next(run.copies_apart))
        with _named(f"behaviors.{self._spec.name}.evaluation"):
            policy = trainer.policy_maker(derived_seed(run.seed, self._index, 2))(settings.deterministic)
        with _named(f"behaviors.{self._spec.name}.{OPPONENT}"):
            match = self._match(settings, trainer)
        return Evaluator(
            settings,
            self._spec.name,
            lambda: make_pool_apart(
                own_source, own_source.make, num_copies, environment.timeout_wait, quota_of(environment)
            ),
            policy,
            derived_seed(run.seed, self._index, 3),
            run.bus,
            place.target.behaviors,
            run.lessons,
            match,
        )

    def _match(self, settings: EvaluationSettings, trainer: Trainer) -> Match | None:
        """Against whom it is evaluated; None without an opponent. Raises ConfigError."""
        run, spec, behaviors = self._run, self._spec, self._place.target.behaviors
        results = run.config.checkpoint_settings.results_dir
        of_leagues = self._place.leagues.oldest
        oldest = OldestOpponent(spec.name, of_leagues, trainer.weights(), behaviors, is_greedy=settings.deterministic)
        return make_match(
            settings,
            Rules.of(self._config.self_play),
            spec,
            self._place.pool.specs,
            oldest,
            partial(find_opponent, results_dir=results, working_directory=run.working_directory),
            derived_seed(run.seed, self._index, 5),
            partial(run.bus.log, "info", spec.name),
        )

    def _note_observations(self, num_parameters: int) -> None:
        """Log how goals and small images are used."""
        run, name, network = self._run, self._spec.name, self._config.network_settings
        if (note := small_images_note(self._spec, network)) is not None:
            run.bus.log("info", name, note)
        key, has = ("network_settings", "goal_conditioning_type"), run.config.source.has
        is_chosen = has(("behaviors", name, *key)) or has(("default_settings", *key))
        noted = goal_note(self._spec, network, num_parameters, is_chosen)
        if noted is not None and run.is_training:
            level, text = noted
            run.bus.log(level, name, text)

    def _settings(self, league: LiveLeague | None) -> LearnerSettings:
        run, place = self._run, self._place
        return LearnerSettings(
            behavior=self._spec.name,
            config=self._config,
            is_training=run.is_training,
            started_at=run.started_at,
            metrics=place.source.metrics,
            clock=place.control.running_seconds,
            hooks=run.hooks,
            lessons=run.lessons if run.lessons.has_any else None,
            num_agents=self._num_agents,
            num_ranks=run.role.size,
            share=run.role.own_share,
            device=self._device,
            league=league,
        )

    @property
    def _num_agents(self) -> int:
        """That usually act at once, in the environments of all ranks."""
        run = self._run
        return self._place.pool.num_agents.get(self._spec.name, 1) * run.num_envs // run.config.env_settings.num_envs

    def _restore(self, files: Files | None, parts: CheckpointParts) -> tuple[int, bool]:
        """The step that it goes on from, and whether its replay buffer was restored."""
        run = self._run
        if files is None:
            restored = run.role.receive(Restored)
            parts.restore(restored.state, restored.step)
            parts.policy = State()  # that of rank 0
            return restored.step, self._share_replay(None, parts.trainer)
        step = self._restored_step(files, parts)
        if run.role.has_others:
            run.role.share(Restored, lambda: Restored(step, parts.state()))
        name, config, trainer = self._spec.name, self._config, parts.trainer
        replay = run.restorer.restore_replay(name, files.folder, config, trainer, run.role.size)
        return step, self._share_replay(replay, trainer) if run.role.has_others else replay is not None

    def _share_replay(self, loaded: State | None, trainer: Trainer) -> bool:
        """Every rank has its part of what rank 0 has loaded; whether that is something."""
        part = shared_out(self._run.role, self._spec.name, loaded)
        if part is not None:
            trainer.load_replay(part)
        return part is not None

    def _restored_step(self, files: Files, parts: CheckpointParts) -> int:
        """The step that it goes on from, with what its checkpoint keeps; 0 for a policy that only plays."""
        run, name, max_steps = self._run, self._spec.name, self._config.max_steps
        step = run.restorer.restore(self._spec, files.store, self._config, parts)
        if not run.is_training:
            return 0
        if step >= max_steps:
            key = f"behaviors.{name}" if name in run.config.behaviors else "default_settings"
            run.bus.log("warning", name, max_steps_reached(key, step, max_steps))
        return step

    def _export_what_is_missing(self, files: Files, trainer: Trainer, step: int) -> None:
        run, saver = self._run, self._run.saver
        if step and run.is_training and files.exporter and _lacks_export(files.folder, self._config, step):
            put = saver.put if self._is_late else saver.put_first
            put(SaveJob(self._spec.name, step, trainer.weights(), None, "interval", None))

    def _announce(self, trainer: Trainer, step: int, has_replay: bool) -> None:
        run, spec, config = self._run, self._spec, self._config
        earlier = earlier_returns(run.folder.events, spec.name) if step and run.role.leads else ()
        keeps_steps = run.is_training and trainer.replay_bytes > 0
        warmup_steps = config.hyperparameters.warmup_steps if keeps_steps and not has_replay else 0
        run.bus.publish(
            BehaviorStarted(
                behavior=spec.name,
                algorithm=config.trainer_type,
                environment=self._place.source.env,
                step=step,
                max_steps=config.max_steps if run.is_training else 0,
                num_agents=self._num_agents,
                num_parameters=trainer.num_parameters,
                threaded=self._is_threaded,
                replay_steps=config.hyperparameters.replay_steps if keeps_steps else 0,
                replay_bytes=trainer.replay_bytes if keeps_steps else 0,
                first_update_step=step + warmup_steps if warmup_steps else 0,
                headline_metrics=tuple(config.hyperparameters.headline_metrics),
                reward_threshold=spec.reward_threshold,
                earlier_returns=earlier,
                learns_offline=self._learns_offline,
                teams=spec.teams,
                plays_itself=self._self_play is not None,
            )
        )

    @property
    def _learns_offline(self) -> bool:
        return self._run.is_training and self._config.hyperparameters.learns_offline

    @property
    def _is_threaded(self) -> bool:
        """Whether the learner has a thread of its own, beside that of the agents."""
        return self._config.threaded and self._run.is_training and not self._learns_offline

    def _behavior(self, learner: Learner, policy: Policy, trainer: Trainer, league: LiveLeague | None) -> Behavior:
        queue_size = max(1, -(-trainer.rows_per_update // BLOCK_ROWS))  # one rollout; more would only be staler
        return Behavior(
            spec=self._spec,
            learner=learner,
            policy=policy,
            time_horizon=trainer.time_horizon,
            summary_freq=self._config.summary_freq,
            control=self._place.control,
            works=queue.Queue(queue_size if self._run.role.size == 1 else 0) if self._is_threaded else None,
            save_traceback=partial(_save_traceback, self._run, self._spec.name),
            league=league,
        )


def _save_traceback(run: RunSetup, behavior: str, error: PluginError | HookError) -> None:
    save_traceback(run.bus, behavior, behavior, run.folder.output, f"{behavior} failed: {error}", error.detail)


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
