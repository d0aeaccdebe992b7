"""A pool and the policies that act in it: from environment steps to blocks of experience."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import TypeAlias

import numpy as np

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.experience import join_decisions
from rl_tui.engine.sampling.assembly import Assembly
from rl_tui.engine.sampling.finished_episodes import Episodes
from rl_tui.engine.sampling.games import Place, find_games
from rl_tui.engine.sampling.pools.base import Stepped
from rl_tui.engine.sampling.pools.numbering import ids_of_instance
from rl_tui.engine.sampling.team_policies import NumberedPolicy, TeamPolicies
from rl_tui.engine.specs import (
    Actions,
    BehaviorSpec,
    DecisionSteps,
    GameSide,
    Int64,
    Policy,
    Statistic,
    Trajectories,
    Weights,
)

AddBehavior: TypeAlias = Callable[[BehaviorSpec], tuple[Policy, int]]
PATIENCE = 1000  # steps: agents that decide at every twentieth step, or on demand, are not taken to have left


def refuse(spec: BehaviorSpec) -> tuple[Policy, int]:
    """The default of `Collector` for `add_behavior`."""
    raise EnvironmentFailure(f"behavior {spec.name} has appeared, and there is no policy for it")


class Collector:
    """Owned by one thread. A cycle is `receive` (steps arrive, rewards are credited), `drain` for every behavior whose
    block is due, and `act` (one policy call per behavior for all waiting agents of all instances).

    An agent that was silent for `patience` steps of every instance has left if newcomers need its slot, and after ten
    times as many in any case.
    """

    def __init__(
        self,
        pool: Stepped,
        policies: Mapping[str, Policy],
        horizons: Mapping[str, int],
        patience: int = PATIENCE,
        add_behavior: AddBehavior = refuse,
        spare_rows: int = 0,
        first_instance: int = 0,
    ):
        """policies and horizons: of behaviors that the pool has. add_behavior: called in `receive` for each other one
        and each that appears later, returns its policy and horizon, and may raise. spare_rows: see Assembly.
        first_instance: the number of the pool's first one among those of all pools."""
        self._pool = pool
        self._patience = patience
        self._steps = [0] * pool.num_instances  # since silent agents were last marked
        self._add_behavior = add_behavior
        self._spare_rows = spare_rows
        self._first_instance = first_instance
        self._policies: dict[str, Policy] = {}
        self._teams: dict[str, TeamPolicies] = {}  # those of several policies
        self._ended: dict[int, dict[Place, GameSide]] = defaultdict(dict)  # by instance: the last sides of their games
        self._assemblies: dict[str, Assembly] = {}
        self._waiting: dict[str, list[tuple[int, DecisionSteps]]] = {}
        self._received: set[int] = set()
        self._joined: dict[str, tuple[list[Int64], Int64]] = {}  # the last ids of a behavior, and their concatenation
        self.environment_seconds = 0.0
        self.inference_seconds = 0.0
        for name, policy in policies.items():
            self._add(name, policy, horizons[name])

    def _add(self, name: str, policy: Policy, horizon: int) -> None:
        self._policies[name] = policy
        teams = policy if isinstance(policy, TeamPolicies) else None
        spec, is_rated = self._pool.specs[name], teams is not None
        assembly = Assembly(spec, horizon, policy.memory_size, self._spare_rows, is_rated=is_rated)
        self._assemblies[name] = assembly
        if teams is not None:
            self._teams[name] = teams
            teams.follow(assembly)
        assembly.set_version(policy.version)
        self._waiting[name] = []

    def receive(self, timeout: float) -> bool:
        """Handle the steps of every instance that is ready; whether any was within `timeout` seconds."""
        start = perf_counter()
        arrived = self._pool.receive(timeout)
        self.environment_seconds += perf_counter() - start
        for instance in self._pool.pop_lost():
            self.abandon(instance)
        if len(self._pool.specs) > len(self._assemblies):
            for name in [name for name in self._pool.specs if name not in self._assemblies]:
                self._add(name, *self._add_behavior(self._pool.specs[name]))
        for instance, behaviors in arrived:
            self._received.add(instance)
            self._steps[instance] += 1
            for name, steps in behaviors.items():
                assembly = self._assemblies[name]
                if steps.measured is not None:
                    assembly.measure(steps.measured)
                if steps.statistics:
                    assembly.gather(_counted(steps.statistics, self._first_instance + instance))
                assembly.receive(steps)
                if len(steps.decisions.agent_ids):
                    self._waiting[name].append((instance, steps.decisions))
            if self._teams:
                self._find_games(instance)
        return bool(arrived)

    def _find_games(self, instance: int) -> None:
        """Keep those that have ended in this step of an instance for the blocks of those that learn from them."""
        sides = [side for name in self._teams for side in self._assemblies[name].pop_sides()]
        if sides:
            earlier = self._ended[instance]
            for game in find_games(sides, earlier):
                self._assemblies[game.own.behavior].games.append(game)
            earlier |= {(side.behavior, side.team): side for side in sides}

    def reset(self, seed: int) -> None:
        """Begin new episodes in every instance; those that are unfinished are truncated."""
        for instance in range(self._pool.num_instances):
            self.abandon(instance)
        self._pool.reset(seed)

    def abandon(self, instance: int) -> None:
        """Drop what waits in this instance, whose episodes are over: what followed its last actions will never be
        known."""
        self._received.discard(instance)
        self._ended.pop(instance, None)
        for name, waiting in self._waiting.items():
            self._waiting[name] = [entry for entry in waiting if entry[0] != instance]
        for assembly in self._assemblies.values():
            assembly.abandon(ids_of_instance(assembly.agents, instance, self._pool.num_instances))

    def is_due(self, behavior: str, num_rows: int) -> bool:
        """Whether a block with at least `num_rows` to learn from is complete, or the columns are full.

        While agents are waited for, only the latter counts.
        """
        assembly = self._assemblies[behavior]
        if assembly.num_complete_learned >= num_rows and not assembly.pending_cut.is_awaited:
            return True
        return assembly.num_complete > 0 and assembly.is_full

    def drain(self, behavior: str) -> Trajectories:
        """The block that is due."""
        return self._assemblies[behavior].drain()

    @property
    def num_learned_actions(self) -> int:
        """Actions that the policies that learn have chosen, of all behaviors."""
        return sum([assembly.num_learned for assembly in self._assemblies.values()])

    @property
    def num_sampled(self) -> dict[str, int]:
        """Actions chosen, by behavior."""
        return {name: assembly.num_sampled for name, assembly in self._assemblies.items()}

    def num_learned(self, behavior: str) -> int:
        """Actions that the policy that learns has chosen."""
        return self._assemblies[behavior].num_learned

    def num_complete(self, behavior: str) -> int:
        """Rows of whole segments to learn from, of which `drain` would give some or all."""
        return self._assemblies[behavior].num_complete_learned

    def num_held(self, behavior: str) -> int:
        """Rows to learn from that were written and not yet drained, including those of unfinished segments."""
        return self._assemblies[behavior].num_held

    def num_departed(self, behavior: str) -> int:
        """How many agents have left without the end of an episode, some of which may have come back."""
        return self._assemblies[behavior].num_departed

    def cut(self, behavior: str, at_once: bool) -> None:
        """From now on, cut segments where their agents are next observed, or again at the horizon."""
        self._assemblies[behavior].cut(at_once)

    def cut_once(self, behavior: str) -> None:
        """Cut every segment that has begun where its agent is next observed, and complete no block before."""
        self._assemblies[behavior].cut_once()

    def drain_new_episodes(self, behavior: str) -> Episodes:
        """The episodes of the policy that learns that ended since the last call."""
        return self._assemblies[behavior].drain_new_episodes()

    def load(self, behavior: str, weights: Weights) -> None:
        """Act with these weights from now on."""
        self._policies[behavior].load(weights)
        self._assemblies[behavior].set_version(weights.version)

    def assign(self, behavior: str, team: int, opponent: NumberedPolicy | None) -> None:
        """Let a team of a behavior that has several policies act by this one; None: by the one that learns."""
        self._teams[behavior].take(team, opponent)

    def act(self) -> None:
        """Choose an action for every waiting agent, and send them to the instances that were received."""
        chosen: dict[int, dict[str, Actions]] = defaultdict(dict)
        ahead = self._instances_ahead()
        left = self._leave(ahead) if ahead else None
        for name, waiting in self._waiting.items():
            if waiting:
                self._act(name, waiting, chosen)
                waiting.clear()
        start = perf_counter()
        for instance in self._received:
            self._pool.send(instance, chosen[instance])
        self.environment_seconds += perf_counter() - start
        self._received.clear()
        if left is not None:
            self._waiting, self._received = left, ahead
        if min(self._steps) >= self._patience:
            self._steps = [0] * len(self._steps)
            for assembly in self._assemblies.values():
                assembly.mark_silent()

    def _instances_ahead(self) -> set[int]:
        """Those that wait until the segments of agents in others are cut."""
        behind: set[int] = set()
        for assembly in self._assemblies.values():
            if assembly.pending_cut.limit is not None:
                behind |= {agent % self._pool.num_instances for agent in assembly.pending_cut.wait().tolist()}
        return self._received - behind if behind else behind

    def _leave(self, ahead: set[int]) -> dict[str, list[tuple[int, DecisionSteps]]]:
        """Take out what waits in these instances."""
        left = {name: [entry for entry in waiting if entry[0] in ahead] for name, waiting in self._waiting.items()}
        for waiting in self._waiting.values():
            waiting[:] = [entry for entry in waiting if entry[0] not in ahead]
        self._received -= ahead
        return left

    def _act(self, name: str, waiting: list[tuple[int, DecisionSteps]], chosen: dict[int, dict[str, Actions]]) -> None:
        start = perf_counter()
        decisions = waiting[0][1] if len(waiting) == 1 else self._join(name, [steps for _, steps in waiting])
        choice = self._policies[name].act(decisions, self._assemblies[name].memories(decisions))
        self.inference_seconds += perf_counter() - start
        self._assemblies[name].act(decisions, choice)
        if len(waiting) == 1:
            chosen[waiting[0][0]][name] = choice.actions
            return
        begin = 0
        for instance, steps in waiting:
            part = slice(begin, begin + len(steps.agent_ids))
            chosen[instance][name] = Actions(choice.actions.continuous[part], choice.actions.discrete[part])
            begin = part.stop

    def _join(self, name: str, parts: list[DecisionSteps]) -> DecisionSteps:
        """The decisions of several instances as one; the array of ids is the same object while its parts are."""
        ids = [part.agent_ids for part in parts]
        last, joined = self._joined.get(name, ([], np.empty(0, np.int64)))
        if len(ids) != len(last) or any(a is not b for a, b in zip(ids, last, strict=True)):
            joined = np.concatenate(ids)
            self._joined[name] = (ids, joined)
        return join_decisions(joined, parts)


def _counted(statistics: Sequence[Statistic], instance: int) -> Sequence[Statistic]:
    """Those that count: most recent values are the first instance's, as in ML-Agents, so that copies do not mix."""
    return [one for one in statistics if one.method != "last"] if instance else statistics
