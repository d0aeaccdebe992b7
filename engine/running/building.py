"""From a configuration to everything that trains: environments, and the behaviors that appear in them."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rl_tui.engine.config.diagnostics import suggest
from rl_tui.engine.config.environment_name import EDITOR, is_of_unity
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.running.announcements import not_there_yet
from rl_tui.engine.running.behavior import Behavior
from rl_tui.engine.running.behavior_building import BehaviorBuilder, Place
from rl_tui.engine.running.environment_runner import EnvironmentRunner
from rl_tui.engine.running.environments import NamedEnvironment, make_pool, named_environments, settings_of, start_note
from rl_tui.engine.running.learner import Learner
from rl_tui.engine.running.lessons.follower import LessonFollower
from rl_tui.engine.running.restoring import require_continued
from rl_tui.engine.running.run_setup import RunSetup, derived_seed
from rl_tui.engine.running.self_play.live_league import Leagues
from rl_tui.engine.running.threads import Control, UiPriority
from rl_tui.engine.running.training_analytics import describe_training
from rl_tui.engine.running.watching.viewer import WatchTarget
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.sampling.pools.worker_process import start_seconds
from rl_tui.engine.specs import BehaviorSpec

LATE_SEEDS = 1000  # more than any run has behaviors when it starts, and any environment later
ENVIRONMENT_SEEDS = 1_000_003  # between environments: ML-Agents gives copy i of one seed + i, and none may be shared


class Builder:
    """Makes the environments and behaviors of a run. Used by the coordinator while the run starts, and by the threads
    of collectors when a behavior appears, one at a time.

    Its public attributes, by behavior, grow when one appears: other threads look up names, or iterate over copies.
    """

    def __init__(
        self,
        run: RunSetup,
        ui_priority: UiPriority,
        source: EnvironmentSource | None = None,
        *,
        is_inline: bool = False,
    ):
        """source: of the environments, instead of those that the configuration names. is_inline: they are made in the
        caller's thread, however long that takes, and the folder's behaviors must be theirs.
        """
        self.learners: dict[str, Learner] = {}
        self.watch_targets: dict[str, WatchTarget] = {}
        self._run = run
        self._ui_priority = ui_priority
        self._source = source
        self._is_inline = is_inline
        self._lock = threading.Lock()

    def runners(self) -> list[EnvironmentRunner]:
        """One runner for the environment of all behaviors, or one for each behavior's own."""
        run = self._run
        is_wanted = run.is_training and run.config.env_settings.training_analytics
        analytics = describe_training(run.config, run.device.type) if is_wanted else None
        if self._source is not None:
            environments: Sequence[NamedEnvironment] = [NamedEnvironment(self._source, tuple(run.config.behaviors))]
        else:
            environments = named_environments(run.config, run.seed, run.folder.run_logs, analytics)
        return [self._runner(self._own(environment, index), index) for index, environment in enumerate(environments)]

    def _own(self, environment: NamedEnvironment, index: int) -> NamedEnvironment:
        """With the copies of this rank among those of all."""
        run, source = self._run, environment.source
        if not run.role.has_others:
            return environment
        return replace(environment, source=replace(source, first_copy=index * run.num_envs + run.first_env))

    def _runner(self, environment: NamedEnvironment, index: int) -> EnvironmentRunner:
        run, source = self._run, environment.source
        settings, follower = run.config.env_settings, LessonFollower(run.lessons)
        limits_itself = settings.worker_count > 0 or is_of_unity(source.env)

        def made() -> EnvironmentPool:
            step = self._reached_step
            pool = make_pool(source, settings, run.folder.run_logs, step)
            follower.prepare(pool, step)
            return pool

        return EnvironmentRunner(
            source,
            environment.behaviors,
            made,
            _EnvironmentBehaviors(self, environment, index),
            run.seed + index * ENVIRONMENT_SEEDS + run.first_env,
            run.bus,
            Control(self._ui_priority),
            follower,
            settings,
            None if limits_itself or self._is_inline else start_seconds(settings.timeout_wait),
            start_note(source.env, settings),
        )

    @property
    def _reached_step(self) -> int:
        """The largest step of a behavior by now; before there are any, the one that the run resumes from."""
        steps = [learner.step for learner in list(self.learners.values())]
        return max(steps, default=self._run.step)

    def require_behaviors(self, environment: NamedEnvironment, specs: Mapping[str, BehaviorSpec]) -> None:
        """A warning names the behaviors of the file that are not there yet. Raises ConfigError where none is."""
        if self._is_inline:
            require_continued(self._run.folder.path, specs)
        missing = [name for name in environment.behaviors if name not in specs]
        if not missing:
            return
        env, found = environment.source.env, f"it has {', '.join(specs) or 'none'}"
        is_some_here = len(missing) < len(environment.behaviors) or not specs  # without any, all are to appear
        may_train = self._run.config.default_settings is not None or is_some_here
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
            self._run.restorer.require_origin(name, settings_of(self._run.config, name))
        if env == EDITOR and not specs:
            return  # it has not connected
        self._run.bus.log("warning", "run", f"{env} {not_there_yet(missing, has_any=bool(specs))}{hint and f'.{hint}'}")

    def share_specs(self, own: Mapping[str, BehaviorSpec]) -> Mapping[str, BehaviorSpec]:
        """The behaviors that the environments of all ranks have. Raises SyncError."""
        return self._run.role.share_specs(own)

    def watch_target(self, source: EnvironmentSource) -> WatchTarget:
        """The behaviors of one environment are watched together; `behavior` adds them."""
        seed, timeout = (
            derived_seed(self._run.seed, len(self.watch_targets), 4),
            self._run.config.env_settings.timeout_wait,
        )
        return WatchTarget(
            source, {}, seed, timeout, self._run.folder.run_logs, self._run.folder.output, self._run.lessons
        )

    def behavior(self, spec: BehaviorSpec, place: Place, late_number: int | None = None) -> Behavior:
        """One behavior with all it needs. late_number: of those that have appeared in its environment, from 0; None at
        the start. Raises RlTuiError."""
        with self._lock:
            index = len(self.learners) if late_number is None else (place.index + 1) * LATE_SEEDS + late_number
            if spec.name in self.learners:
                raise ConfigError(f"behaviors.{spec.name}: two environments of this run have a behavior of this name")
            behavior = BehaviorBuilder(self._run, spec, place, index, is_late=late_number is not None).build()
            self.watch_targets[spec.name] = place.target
            self.learners[spec.name] = behavior.learner
        return behavior


class _EnvironmentBehaviors:
    """Implements BehaviorMaker for the environment of this index."""

    def __init__(self, builder: Builder, environment: NamedEnvironment, index: int):
        self._builder = builder
        self._environment = environment
        self._index = index
        self._num_late = 0
        self._target = builder.watch_target(environment.source)
        self._leagues = Leagues()

    def make_first(self, pool: EnvironmentPool, control: Control) -> Mapping[str, Behavior]:
        """Those that the environments have when they have just been made."""
        specs = self._builder.share_specs(pool.specs)
        self._builder.require_behaviors(self._environment, specs)
        place = self._place(pool, control)
        return {name: self._builder.behavior(spec, place) for name, spec in specs.items()}

    def make_late(self, spec: BehaviorSpec, pool: EnvironmentPool, control: Control) -> Behavior:
        """One that has appeared since."""
        behavior = self._builder.behavior(spec, self._place(pool, control), self._num_late)
        self._num_late += 1
        return behavior

    def _place(self, pool: EnvironmentPool, control: Control) -> Place:
        return Place(self._index, self._environment.source, pool, control, self._target, self._leagues)
