"""What follows the behaviors of a pool while it is collected from: collector, rows of each learner, progress."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Mapping
from typing import TypeVar

from rl_tui.engine.config.run import EnvSettings
from rl_tui.engine.config.types import OFF
from rl_tui.engine.errors import NotSupportedError
from rl_tui.engine.running.behavior import Behavior
from rl_tui.engine.running.progress import ProgressReporter
from rl_tui.engine.running.worker_sampler import WorkerSampler
from rl_tui.engine.sampling.block_sizes import BlockLimits, BlockSizes, RowCounts
from rl_tui.engine.sampling.collecting.pool import CollectingPool
from rl_tui.engine.sampling.collecting.remote_collector import ActingBehavior, RemoteCollector
from rl_tui.engine.sampling.collector import Collector
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.specs import BehaviorSpec, CopyPolicy, Policy, Trajectories

BLOCK_ROWS = 2048  # about the longest block, so that counters advance during a long rollout, too
SPARE_ROWS = 16  # steps for which an agent may wait for slower ones before an update

T = TypeVar("T")


class Collection:
    """Used in the collector's thread, from a reset of the pool to its end.

    behaviors, row_counts: of those that have appeared in this pool. collector: acts here, or has workers act.
    """

    def __init__(
        self,
        pool: EnvironmentPool,
        known: Mapping[str, Behavior],
        add_behavior: Callable[[BehaviorSpec], Behavior],
        bus: EventBus,
        waiting_seconds: Callable[[], float],
        settings: EnvSettings,
    ):
        """known: behaviors, some of which the pool may not have yet. add_behavior: called with each one that appears;
        it may raise. Raises NotSupportedError where a policy is to act in workers, and cannot."""
        self.pool = pool
        self.behaviors = {name: behavior for name, behavior in known.items() if name in pool.specs}
        self.row_counts: dict[str, RowCounts] = {}
        self._add_behavior = add_behavior
        self._act_in = settings.act_in
        self._look_ahead: list[BlockSizes] = []
        spare_rows = SPARE_ROWS if any(each.learner.trainer.cuts_at_update for each in known.values()) else 0
        self.collector: Collector | RemoteCollector
        if isinstance(pool, CollectingPool) and all(map(self._may_act_remotely, self.behaviors.values())):
            acting = {name: self._acting(behavior) for name, behavior in self.behaviors.items()}
            meet = _weakly(self, Collection._meet_remote)
            self.collector = RemoteCollector(pool, acting, meet, settings.shares, spare_rows)
        else:
            policies = {name: behavior.policy for name, behavior in self.behaviors.items()}
            horizons = {name: behavior.time_horizon for name, behavior in self.behaviors.items()}
            meet_here = _weakly(self, Collection._meet)
            self.collector = Collector(pool, policies, horizons, add_behavior=meet_here, spare_rows=spare_rows)
            for behavior in self.behaviors.values():
                self._count_rows(behavior)
        workers = WorkerSampler(pool, self.collector) if isinstance(pool, ProcessPool) else None
        self.reporter = ProgressReporter(self.collector, bus, waiting_seconds, workers)
        for name, behavior in self.behaviors.items():
            self.reporter.add(name, behavior)

    @property
    def is_remote(self) -> bool:
        """Whether agents act in the workers."""
        return isinstance(self.collector, RemoteCollector)

    @property
    def first_step(self) -> int:
        """The largest step that a behavior begins at."""
        return max((behavior.learner.step for behavior in self.behaviors.values()), default=0)

    def next_block(self) -> tuple[str, Trajectories] | None:
        """A block of experience that is due, and whose it is; None where none is."""
        for name, counts in self.row_counts.items():
            if self.collector.is_due(name, counts.size):
                return name, self.collector.drain(name)
        return None

    @property
    def may_act(self) -> bool:
        """Whether `act` has an effect: workers that have begun a round act until its end."""
        return not isinstance(self.collector, RemoteCollector) or self.collector.awaits_round

    def act(self) -> None:
        """Let the agents act that wait."""
        self.collector.act()
        for sizes in self._look_ahead:
            sizes.look_ahead()

    def pause(self, is_paused: bool) -> None:
        """Have workers that act wait before their next steps, or go on."""
        if isinstance(self.collector, RemoteCollector):
            self.collector.pause(is_paused)

    def _may_act_remotely(self, behavior: Behavior) -> bool:
        """Whether its policy may act in workers. Raises NotSupportedError where it must, and cannot."""
        if isinstance(behavior.policy, CopyPolicy) and behavior.policy.recipe(range(1), 1) is not None:
            return True
        if self._act_in == "workers":
            kind = type(behavior.policy).__name__
            raise NotSupportedError(
                f"env_settings.act_in: workers: the policy of {behavior.spec.name} ({kind}) has no recipe by which"
                " workers make it; auto lets it act in the training process"
            )
        return False

    def _meet(self, spec: BehaviorSpec) -> tuple[Policy, int]:
        behavior = self.behaviors[spec.name] = self._add_behavior(spec)
        self._count_rows(behavior)
        self.reporter.add(spec.name, behavior)
        return behavior.policy, behavior.time_horizon

    def _meet_remote(self, spec: BehaviorSpec) -> ActingBehavior:
        behavior = self._add_behavior(spec)
        if not self._may_act_remotely(behavior):
            raise NotSupportedError(
                f"{spec.name} has appeared while others act in workers, and its policy cannot: env_settings.act_in must"
                " be main"
            )
        self.behaviors[spec.name] = behavior
        acting = self._acting(behavior)
        self.reporter.add(spec.name, behavior)
        return acting

    def _count_rows(self, behavior: Behavior) -> None:
        """Have its segments end where its learner needs it."""
        assert isinstance(self.collector, Collector)
        name = behavior.spec.name
        self.row_counts[name] = sizes = BlockSizes(name, behavior.learner, _limits_of(behavior), self.collector)
        self._look_ahead.append(sizes)

    def _acting(self, behavior: Behavior) -> ActingBehavior:
        """What workers need to act for it."""
        learner, policy = behavior.learner, behavior.policy
        assert isinstance(policy, CopyPolicy)
        counts = self.row_counts[behavior.spec.name] = RowCounts(learner, _limits_of(behavior))
        weights, horizon = learner.weights.latest.snapshot.weights, behavior.time_horizon
        return ActingBehavior(policy, weights, horizon, counts, lambda: learner.is_over, behavior.is_threaded)


def _limits_of(behavior: Behavior) -> BlockLimits:
    longest = BLOCK_ROWS if behavior.summary_freq == OFF else min(BLOCK_ROWS, behavior.summary_freq)
    learner = behavior.learner
    return BlockLimits(math.ceil(longest * learner.share), learner.trainer.cuts_at_update)


def _weakly(collection: Collection, meet: Callable[[Collection, BehaviorSpec], T]) -> Callable[[BehaviorSpec], T]:
    """Its method `meet`. A collector that refers to its collection would keep learners in memory after the end of a
    run."""
    reference = weakref.ref(collection)

    def add(spec: BehaviorSpec) -> T:
        found = reference()
        assert found is not None, "it is collected from only while there is one"
        return meet(found, spec)

    return add
