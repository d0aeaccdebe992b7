"""One environment of a run and the behaviors in it: steps, blocks of experience for learners, actions."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from rl_tui.engine.config.run import EnvSettings
from rl_tui.engine.errors import NotSupportedError, RlTuiError
from rl_tui.engine.running.behavior import Behavior
from rl_tui.engine.running.call_timeout import call_with_timeout
from rl_tui.engine.running.collection import Collection
from rl_tui.engine.running.environment_reports import publish_reports
from rl_tui.engine.running.lessons.follower import LessonFollower
from rl_tui.engine.running.progress import ProgressReporter
from rl_tui.engine.running.ranks.messages import LeagueMove
from rl_tui.engine.running.self_play.matchmaking import Matchmaking
from rl_tui.engine.running.self_play.opponents import require_opponents
from rl_tui.engine.running.threads import Control
from rl_tui.engine.running.worker_advice import WorkerAdvice
from rl_tui.engine.sampling.collecting.pool import CollectingPool
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.pools.base import EnvironmentPool, never
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import BehaviorStateChanged
from rl_tui.engine.session.text import counted
from rl_tui.engine.specs import BehaviorSpec, Game, Trajectories

RECEIVE_SECONDS = 0.1  # how long an idle collector may take to see a stop or a command


class BehaviorMaker(Protocol):
    """Makes the behaviors of one environment. Both methods raise RlTuiError."""

    def make_first(self, pool: EnvironmentPool, control: Control) -> Mapping[str, Behavior]:
        """Those that the environments have when they have just been made. Called in the run's thread."""

    def make_late(self, spec: BehaviorSpec, pool: EnvironmentPool, control: Control) -> Behavior:
        """One that has appeared since. Called in the collector's thread."""


class EnvironmentRunner:
    """Used by one thread, which calls `build` and `begin`, and then in turns `receive`, `next_block` until there is
    none, and `act`. Owns pool, collector and policies.

    behaviors: replaced, never changed, when one appears. failure: before the first one appeared, which would have it
    otherwise. on_late: called with the spec of a behavior that has appeared, instead of `make_late`, which it calls on
    all ranks. waiting_seconds: for which nothing was collected, since the caller did something else.
    """

    def __init__(
        self,
        source: EnvironmentSource,
        names: Sequence[str],
        make_pool: Callable[[], EnvironmentPool],
        maker: BehaviorMaker,
        seed: int,
        bus: EventBus,
        control: Control,
        follower: LessonFollower,
        settings: EnvSettings,
        start_seconds: float | None = None,
        start_note: str = "",
    ):
        """names: the behaviors that the configuration has. follower: has given the pools that are made their
        environment parameters. start_seconds: how long making the environments may take; None where the pool limits
        that itself, or nothing does. start_note: logged before that, where it takes long.
        """
        self.environment = source.env
        self.names = tuple(names)
        self.control = control
        self.behaviors: Mapping[str, Behavior] = {}
        self.pool: EnvironmentPool | None = None
        self.failure: RlTuiError | None = None
        self.waiting_seconds = 0.0
        self.on_late: Callable[[BehaviorSpec], object] | None = None
        self._is_lent = source.is_lent
        self._make_pool = make_pool
        self._maker = maker
        self._seed = seed
        self._bus = bus
        self._follower = follower
        self._settings = settings
        self._start_seconds = start_seconds
        self._start_note = start_note
        self._matchmaking = Matchmaking(source.env, bus)
        self._current: Collection | None = None
        self._has_arrived = False  # what agents wait to act on
        self._advice = WorkerAdvice(source.env, settings, source.is_here)

    def build(self, is_stopped: Callable[[], bool] = never) -> None:
        """Start the environments and make the learners. Called once.

        Raises StartStopped once `is_stopped`, EnvironmentFailure, and RlTuiError for the learners.
        """
        log, start = partial(self._bus.log, "debug", self.environment), time.monotonic()
        self.pool = self._make_pool()
        log("starting")  # the last line where its constructor hangs
        if self._start_note:
            self._bus.log("info", self.environment, self._start_note)
        self._start(self.pool, is_stopped)
        made = time.monotonic()
        pids = self.pool.worker_pids.values()
        where = f"worker processes {', '.join(map(str, pids))}" if pids else "this process"
        log(f"{counted(self.pool.num_instances, 'instance')} in {where}, started in {made - start:.3f} s")
        self.behaviors = self._maker.make_first(self.pool, self.control)
        self._require_alike()
        require_opponents(self.environment, self.behaviors)
        log(f"trainers of {', '.join(self.behaviors)} made in {time.monotonic() - made:.3f} s")

    def _start(self, pool: EnvironmentPool, is_stopped: Callable[[], bool] = never) -> None:
        """Start the environments; where they are in this process, in a thread that can be abandoned."""
        if self._start_seconds is None:
            pool.start(is_stopped)
        else:
            advice = "Raise env_settings.timeout_wait if it needs longer"
            call_with_timeout(self._start_seconds, pool, pool.start, advice, is_stopped)

    def renew(self) -> None:
        """Replace the environments. Raises EnvironmentFailure."""
        self.close()
        self.pool = self._make_pool()
        self._start(self.pool)

    def begin(self) -> None:
        """Begin new episodes; what was collected and not passed on is dropped. Raises EnvironmentFailure."""
        assert self.pool is not None
        for behavior in self.behaviors.values():
            behavior.learner.steps_left.restart(behavior.learner.step)
        self._current = Collection(
            self.pool, self.behaviors, self._meet, self._bus, lambda: self.waiting_seconds, self._settings
        )
        self._matchmaking.begin(self._current)
        self._has_arrived = False
        self._say_where_agents_act(self.pool)
        self._bus.log("debug", self.environment, "resetting every instance")
        self.pool.reset(self._seed + self._running.first_step)  # a resumed run must not see the same episodes again

    def _say_where_agents_act(self, pool: EnvironmentPool) -> None:
        if not (number := len(pool.worker_pids)):
            return
        text = f"agents act in {counted(number, 'worker')}"
        if not self._running.is_remote:
            is_fallback = isinstance(pool, CollectingPool)
            why = ", since a policy has no recipe by which workers make it" if is_fallback else ""
            text = f"{counted(number, 'worker')}, and agents act in this process{why}"
        self._bus.log("info", self.environment, text)

    @property
    def is_offline(self) -> bool:
        """Whether its behaviors learn without experience: agents do not act."""
        return any(behavior.learner.is_offline for behavior in self.behaviors.values())

    def _require_alike(self) -> None:
        """Either all behaviors learn from experience, or none. Raises NotSupportedError."""
        offline = [name for name, behavior in self.behaviors.items() if behavior.learner.is_offline]
        others = [name for name in self.behaviors if name not in offline]
        if offline and others:
            text = f"behaviors.{offline[0]}: learns without experience, and shares its environment with {others[0]}"
            raise NotSupportedError(f"{text}, which needs some: train them in two runs")

    def report(self, *, is_over: bool = False) -> None:
        """Publish how far all behaviors and their leagues are. is_over: they were trained to their end."""
        self.reporter.publish_all(is_over=is_over)
        self._matchmaking.report(is_over=is_over)

    @property
    def reporter(self) -> ProgressReporter:
        """What publishes progress, since `begin`."""
        return self._running.reporter

    @property
    def _running(self) -> Collection:
        assert self._current is not None, "begin() was called"
        return self._current

    def receive(self) -> bool:
        """Whether any steps have arrived, for which it waits a moment. Raises EnvironmentFailure, and RlTuiError for a
        behavior that has appeared."""
        assert self.pool is not None
        collector = self._running.collector
        if self._running.is_remote:  # workers act all the time
            self._load_newest()
        try:
            self._has_arrived |= (has_arrived := collector.receive(RECEIVE_SECONDS))
            if has_arrived and (advice := self._advice.count(self.pool, collector.environment_seconds)) is not None:
                self._bus.log("info", self.environment, advice)
            return has_arrived
        finally:
            if not self.control.is_lost:
                publish_reports(self.pool, self.environment, tuple(self.behaviors), self._bus)

    def next_block(self) -> tuple[str, Trajectories] | None:
        """A block of experience that is due, and whose it is; None where none is."""
        due = self._running.next_block()
        if due is not None:
            self._matchmaking.add_games(*due)
            self._follower.add_returns(*due)
        return due

    def share_leagues(self, announce: Callable[[LeagueMove], None] | None, may_decide: Callable[[], bool]) -> None:
        """On several ranks. announce: called with what is decided for leagues on rank 0, None on others, which follow.
        may_decide: whether no behavior learns at the moment."""
        self._matchmaking.share(announce, may_decide)

    def follow_move(self, move: LeagueMove) -> None:
        """Do what rank 0 has decided for a league."""
        self._matchmaking.carry_out(self._running, move)

    def add_games(self, behavior: str, games: Sequence[Game], opponent_steps: int) -> None:
        """Games have ended on other ranks, and opponents have made so many steps on all."""
        self._matchmaking.add_of_ranks(behavior, games, opponent_steps)

    def count(self, behavior: str, block: Trajectories) -> None:
        """Learn of a block that goes to this learner, so that the next one ends where an update begins."""
        self._running.row_counts[behavior].count(block.num_learned)

    def act(self) -> None:
        """Let the agents act that wait, with the newest weights and lessons."""
        running, self._has_arrived = self._running, False
        if not running.may_act:
            return
        self._load_newest()
        if self.control.is_lost:
            return
        self._follower.follow(running, self._seed)
        self._matchmaking.follow(running)
        running.act()

    def _load_newest(self) -> None:
        running = self._running
        for name, behavior in running.behaviors.items():
            weights = behavior.learner.weights.pop()
            if weights is not None:
                running.collector.load(name, weights)
                running.reporter.follow_rollbacks()

    @property
    def awaits_learners(self) -> bool:
        """Whether workers that act wait for the next round, which may begin once learners have all that they need."""
        return self._running.is_remote and self._running.may_act

    def pause(self, is_paused: bool) -> None:
        """Have workers that act wait before their next steps, or go on."""
        if self._current is not None:
            self._current.pause(is_paused)

    def step(self) -> None:
        """Act, where agents wait, and receive what follows. Raises what `receive` does."""
        if self._has_arrived:
            self.act()
        while not self.receive():
            pass

    def close(self) -> None:
        """Free the environments, unless they are the caller's."""
        self._current = None  # it refers to this runner: a cycle would keep learners in memory after the end of a run
        if self.pool is not None and not self._is_lent:
            self.pool.close()

    def _meet(self, spec: BehaviorSpec) -> Behavior:
        """The behavior that has appeared; new environments may meet one that is known. Raises RlTuiError."""
        if spec.name not in self.behaviors:
            (self.on_late or self.make_late)(spec)
        return self.behaviors[spec.name]

    def make_late(self, spec: BehaviorSpec) -> Behavior:
        """Make the trainer of a behavior that has appeared. Raises RlTuiError."""
        assert self.pool is not None
        start = time.monotonic()
        behavior = self._maker.make_late(spec, self.pool, self.control)
        if behavior.is_threaded:
            self.control.join()  # before it can count as parked
        self.behaviors = {**self.behaviors, spec.name: behavior}
        self._require_alike()
        self._bus.publish(BehaviorStateChanged(spec.name, "training"))
        self._bus.log("debug", self.environment, f"trainer of {spec.name} made in {time.monotonic() - start:.3f} s")
        return behavior
