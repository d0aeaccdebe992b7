"""What opponents cost: `python -m tests.benchmarks.opponents`.

Half of the agents act by a snapshot, or by two, as while games go on that began before others were drawn: beside all of
them by the policy that learns. First acting alone (vectors of 17 numbers, five choices, in numpy), then whole cycles of
a collector: `toy:pong`, with the games that are rated, and blocks of experience. They take turns, in CPU time, and the
medians of their ratios count. A cycle with a snapshot should take at most 1.6 times as long as one without, and one
with two at most 1.6 times as long as one with one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.learning.policies import make_policy
from rl_tui.engine.sampling.assembly import Assembly
from rl_tui.engine.sampling.collector import Collector
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.pools.serial import SerialPool
from rl_tui.engine.sampling.team_policies import NumberedPolicy, TeamPolicies
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, DecisionSteps, ObservationSpec, Policy
from tests.benchmarks.tables import table, verdict
from tests.weights import Kind

AGENTS, HIDDEN_UNITS = (8, 32, 128, 512), (64, 128)
SPEC = BehaviorSpec("Player", (ObservationSpec("seen", (17,)),), ActionSpec(0, (5,)))
HORIZON, ROWS = 64, 2048  # of a segment, of a block
LONGEST_GAME = 10_000
SWAP_CYCLES = 8  # shorter than a game, so that both of two snapshots are in play
MARK = 1.6  # times a cycle with one policy or snapshot less
HEAD = ("agents", "units", "one, us", "and a snapshot", "two snapshots")


def policy_of(spec: BehaviorSpec, units: int, seed: int) -> Policy:
    """An untrained one of two layers."""
    network = NetworkSettings(hidden_units=units)
    made = make_policy(spec, network, False, seed)
    made.load(Kind(spec, network).weights(seed))
    return made


def policies_of(spec: BehaviorSpec, units: int, num_snapshots: int) -> tuple[TeamPolicies, Sequence[NumberedPolicy]]:
    """The policy that learns, and these opponents."""
    opponents = [policy_of(spec, units, seed) for seed in range(1, num_snapshots + 1)]
    weights = Kind(spec, NetworkSettings(hidden_units=units)).weights(1)
    numbered = [NumberedPolicy(number, policy, weights) for number, policy in enumerate(opponents, start=1)]
    return TeamPolicies(policy_of(spec, units, 0), LONGEST_GAME), numbered


def acting(count: int, units: int) -> list[Callable[[], object]]:
    """Acting once, without a snapshot, with one, and with two."""
    random = np.random.default_rng(0)
    teams: np.ndarray = np.arange(count) % 2
    seen = random.standard_normal((count, 17)).astype(np.float32)
    decisions = DecisionSteps(np.arange(count), (seen,), np.zeros(count, np.float32), None, team_ids=teams)
    plain = policy_of(SPEC, units, 0)
    calls: list[Callable[[], object]] = [lambda: plain.act(decisions)]
    for num_snapshots in (1, 2):
        policies, opponents = policies_of(SPEC, units, num_snapshots)
        assembly = Assembly(SPEC, HORIZON, is_rated=True)
        policies.follow(assembly)
        for place, opponent in enumerate(opponents):
            policies.take(1, opponent)
            rows = np.flatnonzero((teams == 0) | (np.arange(count) // 2 % num_snapshots == place))
            begun = replace(decisions, observations=(seen[rows],), agent_ids=rows, team_ids=teams[rows])
            begun = replace(begun, rewards=decisions.rewards[rows])
            assembly.observe(begun)
            assembly.act(begun, policies.act(begun))
        assembly.observe(decisions)
        calls.append(lambda policies=policies: policies.act(decisions))
    return calls


def cycling(count: int, units: int) -> list[Callable[[], object]]:
    """A cycle of a collector, without a snapshot, with one, and with two in turns."""
    return [Cycles(count, units, num_snapshots).run for num_snapshots in (0, 1, 2)]


class Cycles:
    """Games of toy:pong between agents of this number, half of which are of either team."""

    def __init__(self, count: int, units: int, num_snapshots: int) -> None:
        source = EnvironmentSource("toy:pong", "Player", {})
        self._pool = SerialPool("toy:pong", source.make, count // 2)
        self._pool.start()
        self._pool.reset(1)
        spec = self._pool.specs["Player"]
        policies, self._opponents = policies_of(spec, units, num_snapshots)
        policy: Policy = policies if num_snapshots else policy_of(spec, units, 0)
        self._collector = Collector(self._pool, {"Player": policy}, {"Player": HORIZON})
        self._num_cycles = 0

    def run(self) -> None:
        """One more."""
        if self._opponents and self._num_cycles % SWAP_CYCLES == 0:
            number = self._num_cycles // SWAP_CYCLES % len(self._opponents)
            self._collector.assign("Player", 1, self._opponents[number])
        self._num_cycles += 1
        self._collector.receive(0.0)
        while self._collector.is_due("Player", ROWS):
            self._collector.drain("Player")
        self._collector.act()


def compare(calls: Sequence[Callable[[], object]], turns: int, seconds: float) -> tuple[float, list[float]]:
    """Seconds of the first one, and how many times as long the others take, each the median over turns."""
    times = max(1, round(seconds / max(1e-6, taken(calls[0], 20))))
    found = [[taken(call, times) for call in calls] for _ in range(turns)]
    ratios = [median(one[place] / one[0] for one in found) for place in range(1, len(calls))]
    return median(one[0] for one in found), ratios


def taken(call: Callable[[], object], times: int) -> float:
    """Seconds of the processor for one call."""
    begin = time.thread_time()
    for _ in range(times):
        call()
    return (time.thread_time() - begin) / times


def main() -> int:
    """Print the tables; 1 if a cycle takes too long."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--turns", type=int, default=9, metavar="N")
    parser.add_argument("--seconds", type=float, default=0.1, metavar="S", help="of a turn")
    chosen = parser.parse_args()
    worst = [0.0, 0.0]
    for title, kind in (("acting", acting), ("a cycle of toy:pong", cycling)):
        rows = []
        for count in AGENTS:
            for units in HIDDEN_UNITS:
                one, ratios = compare(kind(count, units), chosen.turns, chosen.seconds)
                rows.append((f"{count}", f"{units}", f"{1e6 * one:.0f}", *(f"{ratio:.2f} x" for ratio in ratios)))
                if kind is cycling:
                    worst = [max(worst[0], ratios[0]), max(worst[1], ratios[1] / ratios[0])]
        print(table((title, *HEAD[1:]), rows), flush=True)
        print()
    for words, ratio in zip(("a snapshot beside none", "two snapshots beside one"), worst, strict=True):
        print(f"a cycle with {words}: at most {ratio:.2f} x, mark {MARK}: {verdict(ratio <= MARK)}")
    return 0 if max(worst) <= MARK else 1


if __name__ == "__main__":
    sys.exit(main())
