"""What a worker collects by itself: its share of every round, in blocks."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from rl_tui.engine.experience import COLUMNS
from rl_tui.engine.sampling.block_sizes import BlockLimits, BlockSizes
from rl_tui.engine.sampling.collecting.counters import Counters, Counts
from rl_tui.engine.sampling.collecting.share import NEWCOMERS_SHARE, Share
from rl_tui.engine.sampling.collecting.shared_weights import WeightsReader
from rl_tui.engine.sampling.collector import Collector
from rl_tui.engine.sampling.finished_episodes import Episodes
from rl_tui.engine.sampling.pools.numbering import number_ids
from rl_tui.engine.sampling.pools.serial_instances import SerialInstances
from rl_tui.engine.sampling.team_policies import NumberedPolicy, TeamPolicies
from rl_tui.engine.specs import BehaviorSpec, Int64, Policy, State, Trajectories

COUNT_SECONDS = 0.005  # between two times that the counters are written
IDLE_STEPS = 1000  # of the environments, without an agent that learns and acts: far more than between two decisions
EPISODES_SECONDS = 0.1  # between two times that episodes are reported: a terminal shows no more


@dataclass(frozen=True, slots=True)
class OwnPolicy:
    """What acts for a behavior here. number: of the behavior in the counters. weights: the newest, between any two
    actions."""

    number: int
    policy: Policy
    horizon: int
    cuts_at_update: bool
    weights: WeightsReader


@dataclass(frozen=True, slots=True)
class Numbers:
    """The worker's instances among all of the pool: the first of them, and how many there are in all."""

    first: int
    total: int


class Listener(Protocol):
    """Where blocks and episodes go."""

    def add_block(self, behavior: str, block: Trajectories) -> None:
        """A block is complete."""

    def add_episodes(self, behavior: str, episodes: Episodes, num_learned: int) -> None:
        """Episodes have ended, by so many learned actions of this worker."""

    def end_round(self, states: Mapping[str, State]) -> None:
        """The share of the round is complete. states: of the policies' generators."""

    def await_policy(self, spec: BehaviorSpec) -> None:
        """Return once `give_policy` was called for this behavior, which has no policy yet."""


class ShareCollector:
    """Used by the worker's thread: `go` begins a round, and `advance` is called until `is_going` is false.

    Nothing acts between two rounds. Agents have the ids that they have in the whole pool.
    """

    def __init__(
        self, instances: SerialInstances, numbers: Numbers, listener: Listener, counters: Counters, spare_rows: int = 0
    ) -> None:
        """spare_rows: see Assembly."""
        self.is_going = False
        self._numbers, self._num_own = numbers, instances.num_instances
        self._listener, self._counters = listener, counters
        self._policies: dict[str, OwnPolicy] = {}
        self._shares: dict[str, Share] = {}
        self._sizes: dict[str, BlockSizes] = {}
        self._given: dict[str, int] = {}  # rows of all rounds, by behavior
        self._is_enough = False
        self._num_learned = self._num_idle = 0  # learned actions by the last step, and steps since then without one
        self._count_at = self._report_at = 0.0
        counters.begin_wait()
        self._collector = Collector(
            instances, {}, {}, add_behavior=self._add_behavior, spare_rows=spare_rows, first_instance=numbers.first
        )

    def give_policy(self, behavior: str, policy: OwnPolicy) -> None:
        """What acts for a behavior that has appeared here, or will."""
        self._policies[behavior] = policy

    def assign(self, behavior: str, team: int, opponent: NumberedPolicy | None) -> None:
        """Let a team of a behavior that has several policies act by this one; None: by the one that learns."""
        policy = self._policies[behavior].policy
        assert isinstance(policy, TeamPolicies), "only such a behavior has opponents"
        policy.take(team, opponent)

    def has_policy(self, behavior: str) -> bool:
        """Whether something acts for that behavior."""
        return behavior in self._policies

    def go(self, shares: Mapping[str, Share]) -> None:
        """Begin a round."""
        self._shares = dict(shares)
        for name in list(self._sizes):
            self._sizes[name] = self._new_sizes(name)
        self.is_going, self._is_enough, self._num_idle = True, False, 0
        self._counters.end_wait()

    def stop(self) -> None:
        """End the round with what is complete."""
        self._is_enough = self.is_going

    def abandon(self, instance: int) -> None:
        """The episodes of this instance are over, and what followed its last actions is not known."""
        self._collector.abandon(instance)

    def flush(self) -> None:
        """Pass on all that is complete: no more comes."""
        for name in self._sizes:
            if self._collector.is_due(name, 1):
                self._pass_on(name)
        self._report(time.perf_counter())

    def advance(self) -> bool:
        """Act with the newest weights, receive what follows, and pass on the blocks that are complete; whether anything
        was received."""
        for name in self._sizes:
            own = self._policies[name]
            if own.weights.version != own.policy.version:
                self._collector.load(name, own.weights.read())
        self._collector.act()
        for sizes in self._sizes.values():
            sizes.look_ahead()
        has_arrived = self._collector.receive(0.0)
        for name, sizes in self._sizes.items():
            while self._collector.is_due(name, 1 if self._is_enough else sizes.size):
                self._pass_on(name)
        now = time.perf_counter()
        if self._is_enough or self._is_complete or self._is_deserted():
            self._end_round(now)
        elif now >= self._count_at:
            self._report(now)
        return has_arrived

    @property
    def _is_complete(self) -> bool:
        """Whether some behavior has its share."""
        for name, sizes in self._sizes.items():  # noqa: SIM110  # a generator takes three times as long
            if self._shares[name].is_complete(sizes.num_given):
                return True
        return False

    def _is_deserted(self) -> bool:
        """Whether no agent that learns has acted for so long that nothing should wait for this worker: not the others,
        nor the turn of another team."""
        num_learned = self._collector.num_learned_actions
        self._num_idle = self._num_idle + 1 if num_learned == self._num_learned else 0
        self._num_learned = num_learned
        return self._num_idle >= IDLE_STEPS

    def _end_round(self, now: float) -> None:
        self.is_going, self._report_at = False, 0.0
        self._counters.begin_wait()
        self._report(now)
        self._listener.end_round({name: self._policies[name].policy.state() for name in self._sizes})

    def _report(self, now: float) -> None:
        """Write the counters, and pass on episodes now and then."""
        collector, self._count_at = self._collector, now + COUNT_SECONDS
        self._counters.spend(collector.environment_seconds, collector.inference_seconds)
        for name, num_sampled in collector.num_sampled.items():
            complete = self._given[name] + collector.num_complete(name)
            held, departed = collector.num_held(name), collector.num_departed(name)
            counts = Counts(num_sampled, collector.num_learned(name), complete, departed, held)
            self._counters.count(self._policies[name].number, counts)
        if now >= self._report_at:
            self._report_at = now + EPISODES_SECONDS
            for name in collector.num_sampled:
                episodes = collector.drain_new_episodes(name)
                if len(episodes.ends):
                    self._listener.add_episodes(name, episodes, collector.num_learned(name))

    def _pass_on(self, name: str) -> None:
        block = self._collector.drain(name)
        self._sizes[name].count(block.num_learned)
        self._given[name] += block.num_learned
        self._listener.add_block(name, self._renumbered(block))

    def _add_behavior(self, spec: BehaviorSpec) -> tuple[Policy, int]:
        """Of a behavior that has appeared. Where that was in the middle of a round, in which it has no share, the round
        ends here."""
        if spec.name not in self._policies:
            self._listener.await_policy(spec)
        own = self._policies[spec.name]
        if spec.name not in self._shares:
            self._shares[spec.name] = NEWCOMERS_SHARE
            self._is_enough = True
        self._given[spec.name] = 0
        self._sizes[spec.name] = self._new_sizes(spec.name)
        return own.policy, own.horizon

    def _new_sizes(self, name: str) -> BlockSizes:
        share = self._shares[name]
        limits = BlockLimits(share.longest, self._policies[name].cuts_at_update)
        return BlockSizes(name, share, limits, self._collector)

    def _renumbered(self, block: Trajectories) -> Trajectories:
        """The same block with the ids of the whole pool."""
        if self._num_own == self._numbers.total:
            return block
        ids: dict[str, Any] = {name: self._number(getattr(block, name)) for name in ("agent_ids", "departed")}
        for column in COLUMNS:
            if column.holds_ids and getattr(block, column.name, None) is not None:
                ids[column.name] = self._number(getattr(block, column.name))
        return replace(block, **ids)

    def _number(self, ids: Int64) -> Int64:
        """The pool's ids of those here, which are id * num_own + instance; negative ones, which are none, stay."""
        own = number_ids(ids // self._num_own, self._numbers.total, self._numbers.first)
        return own + (ids % self._num_own) * (ids >= 0)
