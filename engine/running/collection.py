"""What follows the behaviors of a pool while it is collected from: collector, sizes of blocks, progress."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping

from rl_tui.engine.running.behavior import Behavior
from rl_tui.engine.running.block_sizes import BlockSizes
from rl_tui.engine.running.progress import ProgressReporter
from rl_tui.engine.sampling.collector import Collector
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.specs import BehaviorSpec, Policy

SPARE_ROWS = 16  # steps for which an agent may wait for slower ones before an update


class Collection:
    """Used in the collector's thread, from a reset of the pool to its end.

    behaviors, block_sizes: of the behaviors that have appeared in this pool.
    """

    def __init__(
        self,
        pool: EnvironmentPool,
        known: Mapping[str, Behavior],
        add_behavior: Callable[[BehaviorSpec], Behavior],
        bus: EventBus,
        waiting_seconds: Callable[[], float],
    ):
        """known: behaviors, some of which the pool may not have yet. add_behavior: called with each one that appears;
        it may raise."""
        self.behaviors = {name: behavior for name, behavior in known.items() if name in pool.specs}
        policies = {name: behavior.policy for name, behavior in self.behaviors.items()}
        horizons = {name: behavior.time_horizon for name, behavior in self.behaviors.items()}
        waits = any(behavior.learner.trainer.cuts_at_update for behavior in known.values())
        spare_rows = SPARE_ROWS if waits else 0
        self.collector = Collector(pool, policies, horizons, add_behavior=_weakly(self), spare_rows=spare_rows)
        self.reporter = ProgressReporter(self.collector, bus, waiting_seconds)
        self.block_sizes: dict[str, BlockSizes] = {}
        self._add_behavior = add_behavior
        for name, behavior in self.behaviors.items():
            self._follow(name, behavior)

    @property
    def first_step(self) -> int:
        """The largest step that a behavior begins at."""
        return max((behavior.learner.step for behavior in self.behaviors.values()), default=0)

    def _add(self, spec: BehaviorSpec) -> tuple[Policy, int]:
        behavior = self._add_behavior(spec)
        self.behaviors[spec.name] = behavior
        self._follow(spec.name, behavior)
        return behavior.policy, behavior.time_horizon

    def _follow(self, name: str, behavior: Behavior) -> None:
        self.reporter.add(name, behavior)
        self.block_sizes[name] = BlockSizes(name, behavior, self.collector)


def _weakly(collection: Collection) -> Callable[[BehaviorSpec], tuple[Policy, int]]:
    """Its `_add`. A collector that refers to its collection would keep learners in memory after the end of a run."""
    reference = weakref.ref(collection)

    def add(spec: BehaviorSpec) -> tuple[Policy, int]:
        found = reference()
        assert found is not None, "it is collected from only while there is one"
        return found._add(spec)

    return add
