"""The collectors of all workers of a pool, as one: rounds of experience, by the same versions of each policy."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from rl_tui.engine.experience import join_trajectories
from rl_tui.engine.sampling.block_sizes import RowCounts
from rl_tui.engine.sampling.collecting.counters import Counts
from rl_tui.engine.sampling.collecting.episode_order import EpisodeOrder
from rl_tui.engine.sampling.collecting.open_segments import OpenSegments
from rl_tui.engine.sampling.collecting.pool import CollectingPool
from rl_tui.engine.sampling.collecting.process import (
    BehaviorMet,
    BlockArrived,
    EpisodesArrived,
    GivenOpponent,
    GivenPolicy,
    RoundEnded,
    WorkerLost,
    WorkerRenewed,
)
from rl_tui.engine.sampling.collecting.share import NO_END, OVER, Share
from rl_tui.engine.sampling.collecting.totals import Totals
from rl_tui.engine.sampling.finished_episodes import Episodes
from rl_tui.engine.sampling.team_policies import NumberedPolicy, TeamPolicies
from rl_tui.engine.specs import LEARNING, BehaviorSpec, CopyPolicy, Int64, Trajectories, Weights

Shares: TypeAlias = Literal["even", "adaptive"]
ADAPTING_SECONDS = 0.001  # between two looks at what workers have counted
SWAPPING_SECONDS = 0.005  # between two looks for new weights


@dataclass(frozen=True, slots=True)
class ActingBehavior:
    """policy: never acts itself, makes those of the workers, and keeps the states of their generators. weights: the
    first ones. horizon: rows of the longest segment. counts: what its learner was given. is_over: it learns no more,
    and only acts. learns_meanwhile: new weights may come at any moment of a round, and act from then on."""

    policy: CopyPolicy
    weights: Weights
    horizon: int
    counts: RowCounts
    is_over: Callable[[], bool]
    learns_meanwhile: bool = False


AddActing: TypeAlias = Callable[[BehaviorSpec], ActingBehavior]


class _Collected:
    """What has come of one behavior, and not yet been given to its learner. All lists are by worker."""

    def __init__(self, number: int, behavior: ActingBehavior, num_workers: int) -> None:
        self.number = number
        self.acting = behavior
        self.weights = behavior.weights
        self.written_version: int | None = None  # of the weights in shared memory
        self.blocks: list[deque[Trajectories]] = [deque() for _ in range(num_workers)]
        self.open = [OpenSegments() for _ in range(num_workers)]
        self.departed: list[Int64] = []
        self.opponents: dict[int, NumberedPolicy | None] = {}  # by team
        self.episodes = EpisodeOrder(num_workers)
        self.num_arrived = [0] * num_workers  # rows of all rounds
        self.arrived_before = 0  # rows of all workers, before this round
        self.needed = 0  # rows of it, of all workers


class RemoteCollector:
    """Used by one thread. Every worker collects its share of a round and waits until the next one begins; a behavior
    that has less than its update needs then goes on in the next round.

    With even shares, a block is what each worker has collected next, in their order: when it came makes no difference.
    With adaptive ones, fast workers collect more, and a round ends once they have enough together.

    totals: what the workers have counted.
    """

    def __init__(
        self,
        pool: CollectingPool,
        behaviors: Mapping[str, ActingBehavior],
        add_behavior: AddActing,
        shares: Shares = "even",
        spare_rows: int = 0,
        *,
        has_checksums: bool = False,
    ) -> None:
        """behaviors: those that are known, also some that the pool does not have yet. add_behavior: called in `receive`
        for each other one that appears."""
        self._pool = pool
        self._add_behavior = add_behavior
        self._is_adaptive = shares == "adaptive"
        self._num_workers = len(pool.workers)
        self._waiting = set(range(self._num_workers))
        self._absent: set[int] = set()  # those that are started again, whom no round waits for
        self._restarts = [0] * self._num_workers
        self.totals = Totals(pool)
        self._behaviors: dict[str, _Collected] = {}
        self._has_stopped = False  # the round, which had enough
        pool.begin_collecting(spare_rows, has_checksums=has_checksums)
        for name, behavior in behaviors.items():
            self._add(name, behavior)

    def _add(self, name: str, behavior: ActingBehavior) -> None:
        collected = _Collected(len(self._behaviors), behavior, self._num_workers)
        self._behaviors[name] = collected
        self.totals.add_behavior()
        self._write_weights(name)
        for worker in range(self._num_workers):
            if self._pool.workers[worker].is_ready:
                self._give_policy(name, worker)

    def _give_policy(self, name: str, worker: int) -> None:
        collected = self._behaviors[name]
        acting = collected.acting
        copies, num_instances = self._pool.copies_of(worker), self._pool.num_instances_of(worker)
        policy = acting.policy.recipe(copies, num_instances, self._restarts[worker])
        assert policy is not None, "it may act in workers"
        cuts = acting.counts.limits.cuts_at_update
        place = self._pool.weights.place(name)
        given = GivenPolicy(name, collected.number, policy, acting.horizon, cuts, place)
        self._pool.workers[worker].give_policy(given)
        for team in collected.opponents:
            self._give_opponent(name, team, worker)

    def assign(self, behavior: str, team: int, opponent: NumberedPolicy | None) -> None:
        """Let a team of a behavior that has several policies act by this one; None: by the one that learns. Called
        while all workers wait, or before they know that behavior."""
        collected = self._behaviors[behavior]
        policies = collected.acting.policy
        assert isinstance(policies, TeamPolicies), "only such a behavior has opponents"
        policies.take(team, opponent)
        collected.opponents[team] = opponent
        if opponent is not None:
            self._pool.weights.write(_place_of(behavior, team), opponent.weights)
        for worker, process in enumerate(self._pool.workers):
            if process.is_ready:
                self._give_opponent(behavior, team, worker)

    def _give_opponent(self, name: str, team: int, worker: int) -> None:
        opponent = self._behaviors[name].opponents[team]
        process = self._pool.workers[worker]
        if opponent is None:
            process.give_opponent(GivenOpponent(name, team, None, LEARNING, None))
            return
        assert isinstance(opponent.policy, CopyPolicy), "it may act in workers"
        copies, num_instances = self._pool.copies_of(worker), self._pool.num_instances_of(worker)
        recipe = opponent.policy.recipe(copies, num_instances, self._restarts[worker])
        place = self._pool.weights.place(_place_of(name, team))
        process.give_opponent(GivenOpponent(name, team, recipe, opponent.number, place))

    @property
    def awaits_round(self) -> bool:
        """Whether every worker waits that is there, and everything that they have collected was drained."""
        return self._is_round_over()

    def _is_round_over(self) -> bool:
        if not self._waiting or not self._all_wait():
            return False
        return not any(map(self._has_blocks, self._behaviors))

    def _all_wait(self) -> bool:
        return len(self._waiting) + len(self._absent) == self._num_workers

    def receive(self, timeout: float) -> bool:
        """Whether there is a block, or a round may begin, within `timeout` seconds. Raises EnvironmentFailure."""
        if self._is_round_over():
            return True
        for each in self._pool.receive_news(self._patience(timeout)):
            self._take(each)
        self._stop_where_enough()
        return self._is_round_over() or any(map(self._is_due, self._behaviors))

    def _patience(self, timeout: float) -> float:
        """Seconds to wait for news: workers that take more than their share are looked after often, and so are weights
        that may come meanwhile."""
        if self._is_adaptive:
            return min(timeout, ADAPTING_SECONDS)
        if any(collected.acting.learns_meanwhile for collected in self._behaviors.values()):
            return min(timeout, SWAPPING_SECONDS)
        return timeout

    def is_due(self, behavior: str, num_rows: int) -> bool:
        """Whether there is a block, which has as many rows as were asked for when its round began."""
        return behavior in self._behaviors and self._is_due(behavior)

    def drain(self, behavior: str) -> Trajectories:
        """The block that is due."""
        collected = self._behaviors[behavior]
        parts = []
        for queue in collected.blocks:
            if queue:
                parts.append(queue.popleft())
            while queue and self._is_adaptive:
                parts.append(queue.popleft())
        block = join_trajectories(parts)
        if collected.departed:
            gone = np.concatenate([block.departed, *collected.departed])
            block = replace(block, departed=gone[~np.isin(gone, block.agent_ids)])
            collected.departed = []
        return block

    def act(self) -> None:
        """Begin the next round where all workers wait, with the newest weights."""
        if not self.awaits_round:
            return
        self._has_stopped = False
        workers = sorted(self._waiting)
        shares = self._next_shares(workers)
        for name, collected in self._behaviors.items():
            self._write_weights(name)
            collected.episodes.begin_round([counts.learned for counts in self._counts(name)], workers)
        for index, worker in enumerate(workers):
            own = {name: each[index] for name, each in shares.items()}
            if any(share.is_complete(0) for share in own.values()):
                self._wait(worker)
            else:
                self._waiting.discard(worker)
                self._pool.workers[worker].go(own)

    def _next_shares(self, workers: Sequence[int]) -> dict[str, list[Share]]:
        """The parts of these workers of what each behavior needs."""
        shares, num_workers = {}, len(workers)
        for name, collected in self._behaviors.items():
            counts = collected.acting.counts
            is_over = collected.acting.is_over() or counts.left <= 0
            needed = collected.needed = NO_END if is_over else counts.until_update
            num_rows = needed if self._is_adaptive else math.ceil(needed / num_workers)
            longest = math.ceil(counts.limits.longest / num_workers)
            totals = self._counts(name)
            held = [totals[worker].held for worker in workers]
            parts = [OVER] * num_workers if is_over else _last_parts(counts.left, held)
            shares[name] = [Share(num_rows, part, longest) for part in parts]
            collected.arrived_before = sum(collected.num_arrived)
        return shares

    def load(self, behavior: str, weights: Weights) -> None:
        """Act with these weights from the next round on, or at once if the behavior learns meanwhile."""
        collected = self._behaviors[behavior]
        collected.weights = weights
        if collected.acting.learns_meanwhile:
            self._write_weights(behavior)

    def _write_weights(self, name: str) -> None:
        collected = self._behaviors[name]
        if collected.weights.version != collected.written_version:
            self._pool.weights.write(name, collected.weights)
            collected.written_version = collected.weights.version

    def reset(self, seed: int) -> None:
        """Begin new episodes in every instance; those that are unfinished are truncated."""
        self._pool.reset(seed)

    def pause(self, is_paused: bool) -> None:
        """Have the workers wait before their next steps, or go on."""
        for worker in self._pool.workers:
            if worker.is_ready:
                worker.pause(is_paused)

    def _take(self, news: object) -> None:
        match news:
            case BlockArrived(worker, name, block):
                collected = self._behaviors[name]
                collected.blocks[worker].append(block)
                collected.open[worker].add(block)
                collected.num_arrived[worker] += block.num_learned
            case EpisodesArrived(worker, name, episodes, num_learned):
                self._behaviors[name].episodes.add(worker, self._since_restarts(name, worker, episodes))
                self._behaviors[name].episodes.reach(worker, self._learned_before(name, worker) + num_learned)
            case BehaviorMet(worker, spec):
                self._meet(spec)
            case RoundEnded(worker, states):
                self._wait(worker)
                for name, state in states.items():
                    self._behaviors[name].acting.policy.load_state(state)
            case WorkerLost(worker, counters):
                self._lose(worker)
                if counters is not None:
                    arrived = [collected.num_arrived[worker] for collected in self._behaviors.values()]
                    self.totals.add_lost(worker, counters, arrived)
            case WorkerRenewed(worker):
                self._renew(worker)

    def _wait(self, worker: int) -> None:
        self._waiting.add(worker)
        for collected in self._behaviors.values():
            collected.episodes.reach(worker, math.inf)

    def _since_restarts(self, name: str, worker: int, episodes: Episodes) -> Episodes:
        """The same, where the worker's actions include those of its predecessors."""
        return episodes._replace(ends=episodes.ends + self._learned_before(name, worker))

    def _learned_before(self, name: str, worker: int) -> int:
        return self.totals.learned_before(self._behaviors[name].number, worker)

    def _meet(self, spec: BehaviorSpec) -> None:
        """A worker waits for this behavior's policy; all get it, and where they have no share of anything, they wait
        for the next round."""
        if spec.name in self._behaviors:
            return
        is_first = not self._behaviors
        self._add(spec.name, self._add_behavior(spec))
        if is_first:
            self._stop()

    def _lose(self, worker: int) -> None:
        """What a worker had not passed on is lost: the episodes of its agents end where they were last cut."""
        self._waiting.discard(worker)
        self._absent.add(worker)
        for collected in self._behaviors.values():
            collected.episodes.reach(worker, math.inf)
            blocks, departed = collected.open[worker].close(collected.blocks[worker])
            collected.blocks[worker] = deque(blocks)
            if len(departed):
                collected.departed.append(departed)

    def _renew(self, worker: int) -> None:
        """A worker is there again, and waits for the next round."""
        self._restarts[worker] += 1
        self._absent.discard(worker)
        for name in self._behaviors:
            self._give_policy(name, worker)
        self._wait(worker)

    def _stop_where_enough(self) -> None:
        """With adaptive shares, end the round once the workers have enough together."""
        if not self._is_adaptive or self._has_stopped:
            return
        for name, collected in self._behaviors.items():
            complete = sum(count.complete for count in self._counts(name)) - collected.arrived_before
            if complete >= collected.needed:
                self._stop()
                return

    def _stop(self) -> None:
        self._has_stopped = True
        for worker in set(range(self._num_workers)) - self._waiting - self._absent:
            self._pool.workers[worker].stop()

    def _has_blocks(self, name: str) -> bool:
        return any(self._behaviors[name].blocks)

    def _is_due(self, name: str) -> bool:
        """With even shares, once each worker has its next part of the block."""
        collected = self._behaviors[name]
        if not any(collected.blocks):
            return False
        if self._is_adaptive:
            waiting = sum(block.num_learned for queue in collected.blocks for block in queue)
            return waiting >= collected.acting.counts.size or self._all_wait()
        idle = self._waiting | self._absent
        return all(queue or worker in idle for worker, queue in enumerate(collected.blocks))

    def _counts(self, name: str) -> list[Counts]:
        """Of each worker, with its predecessors."""
        return self.totals.counts(self._behaviors[name].number)

    @property
    def num_sampled(self) -> dict[str, int]:
        """Actions chosen, by behavior."""
        return {name: sum(counts.sampled for counts in self._counts(name)) for name in self._behaviors}

    def num_learned(self, behavior: str) -> int:
        """Actions that the policy that learns has chosen."""
        return sum(counts.learned for counts in self._counts(behavior))

    def num_departed(self, behavior: str) -> int:
        """How many agents have left without the end of an episode, some of which may have come back."""
        return sum(counts.departed for counts in self._counts(behavior))

    def drain_new_episodes(self, behavior: str) -> Episodes:
        """The episodes that ended since the last call, of the policy that learns."""
        return self._behaviors[behavior].episodes.pop()

    @property
    def environment_seconds(self) -> float:
        """The mean over workers."""
        return sum(times.environment for times in self.totals.times) / self._num_workers

    @property
    def inference_seconds(self) -> float:
        """The mean over workers."""
        return sum(times.inference for times in self.totals.times) / self._num_workers


def _place_of(behavior: str, team: int) -> str:
    """Under which name the weights of a team's opponent are shared. A worker copies them before it acts again, so that
    those of the next one may take their place."""
    return f"{behavior}?team={team}"


def _last_parts(num_left: int, held: Sequence[int]) -> list[int]:
    """Each worker's part of the rows that are left: what it holds, and an even part of the others."""
    each, more = divmod(max(0, num_left - sum(held)), len(held))
    return [rows + each + (index < more) for index, rows in enumerate(held)]
