"""What many agents that come and go cost between an environment and the trainer, and whether memory grows with them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from statistics import mean
from time import process_time
from typing import Any

import numpy as np
import psutil

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.learning.policies import make_policy
from rl_tui.engine.sampling.assembly import Assembly
from rl_tui.engine.sampling.collector import PATIENCE, Collector
from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.sampling.pools.checks import AnswerCheck
from rl_tui.engine.sampling.pools.numbering import PoolIds
from rl_tui.engine.sampling.pools.serial import SerialPool
from rl_tui.engine.specs import (
    Actions,
    ActionSpec,
    BehaviorSpec,
    DecisionSteps,
    Float32,
    Int64,
    ObservationSpec,
    Policy,
    Steps,
    TerminalSteps,
)
from tests.benchmarks.processes import ROOT, limit_cpus, run_python
from tests.benchmarks.tables import table
from tests.weights import Kind

INSTANCES = 2
AGENTS = 250  # of each behavior in each instance: 1,000 in all
LIFE = 20  # steps, after which an agent is replaced by one with a new id
VANISHING = 0.1  # of those, how many leave without an end
HORIZON, BLOCK_ROWS = 64, 4096
NETWORK = NetworkSettings(hidden_units=64, num_layers=2)
SEEN = (ObservationSpec("seen", (8,)),)
SPECS = {
    "Runner": BehaviorSpec("Runner", SEEN, ActionSpec(continuous=2)),
    "Guard": BehaviorSpec("Guard", SEEN, ActionSpec(branches=(3,))),
}
STEPS, QUICK_STEPS = 10_000_000, 200_000  # of agents, in all
WARM_UP = 2 * PATIENCE + 100  # cycles: by then, the slots of the first agents that vanished have been used again
TIMED = 500  # cycles, for the parts
TENTHS = 10
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
MEBIBYTE = 2**20


class Crowd:
    """Agents of two behaviors, each replaced every LIFE steps, some of them in every step."""

    def __init__(self) -> None:
        self.specs: Mapping[str, BehaviorSpec] = SPECS
        self.num_agents: Mapping[str, int] = dict.fromkeys(SPECS, AGENTS)
        self._random = np.random.default_rng(0)
        self._ids: dict[str, Int64] = {}
        self._ages: dict[str, Int64] = {}
        self._next_id = dict.fromkeys(SPECS, AGENTS)
        self._rewards: Float32 = np.ones(AGENTS, np.float32)

    def reset(self, seed: int | None) -> Mapping[str, Steps]:
        """All agents are new, at different ages."""
        for name in SPECS:
            self._ids[name], self._ages[name] = np.arange(AGENTS), np.arange(AGENTS) % LIFE
        return {name: Steps(DecisionSteps(self._ids[name], (self._seen(AGENTS),), self._rewards)) for name in SPECS}

    def step(self, actions: Mapping[str, Actions]) -> Mapping[str, Steps]:
        """One step of all agents."""
        return {name: self._step(name) for name in SPECS}

    def close(self) -> None:
        """Nothing is held."""

    def _step(self, name: str) -> Steps:
        ages = self._ages[name]
        ages += 1
        old = np.flatnonzero(ages == LIFE)
        ended = old[self._random.random(len(old)) >= VANISHING]
        truncated = np.zeros(len(ended), np.bool_)
        final = TerminalSteps(self._ids[name][ended], (self._seen(len(ended)),), self._rewards[: len(ended)], truncated)
        ages[old] = 0
        self._ids[name] = ids = self._ids[name].copy()
        ids[old] = self._next_id[name] + np.arange(len(old))
        self._next_id[name] += len(old)
        return Steps(DecisionSteps(ids, (self._seen(AGENTS),), self._rewards), final if len(ended) else None)

    def _seen(self, count: int) -> Float32:
        return self._random.random((count, *SEEN[0].shape), np.float32)


@dataclass(frozen=True, slots=True)
class Crowding:
    """steps_per_second: of agents, in CPU time, through everything, and those of the policies alone. microseconds: CPU
    time of each part of a cycle, in which every agent acts once. resident: MiB, means of tenths of `steps` agent-steps.
    """

    steps_per_second: float
    policy_steps_per_second: float
    microseconds: dict[str, float]
    steps: int
    resident: list[float]


def measure_crowd(*, is_quick: bool) -> Crowding:
    """In a process of its own, on one CPU."""
    steps = QUICK_STEPS if is_quick else STEPS
    said = run_python("-m", "tests.benchmarks.crowd", str(steps), folder=ROOT, variables=ONE_THREAD)
    return Crowding(**json.loads(said))


def report(crowding: Crowding) -> str:
    """The measurement as text."""
    head = (
        f"(o) {len(SPECS) * INSTANCES * AGENTS:,} agents of two behaviors, new ids every {LIFE} steps, 64 x 64 units, "
        f"one CPU: {crowding.steps_per_second:,.0f} agent-steps a CPU-second; the policies alone "
        f"{crowding.policy_steps_per_second:,.0f}"
    )
    whole = sum(crowding.microseconds.values())
    rows = [(part, f"{time:,.0f}", f"{time / whole:.0%}") for part, time in crowding.microseconds.items()]
    parts = table(("part of a cycle", "us", "share"), rows)
    first, last = crowding.resident[0], crowding.resident[-1]
    memory = f"{first:.1f} MiB in the first tenth of {crowding.steps:,} agent-steps, {last:.1f} MiB in the last"
    return f"{head}\n\n{parts}\nresident: {memory}"


class _Cycles:
    """A collector with its pool and policies, and a clock for each part."""

    def __init__(self) -> None:
        self._pool = SerialPool("crowd", _make, INSTANCES)
        self._pool.start()
        self._pool.reset(0)
        self.policies: dict[str, Policy] = {name: _policy(spec) for name, spec in SPECS.items()}
        self._collector = Collector(self._pool, self.policies, dict.fromkeys(SPECS, HORIZON))

    def run(self, count: int) -> int:
        """Run so many cycles; returns how many actions were chosen."""
        collector = self._collector
        before = sum(collector.num_sampled.values())
        for _ in range(count):
            collector.receive(0.0)
            for name in SPECS:
                while collector.is_due(name, BLOCK_ROWS):
                    collector.drain(name)
                    collector.drain_new_episodes(name)
            collector.act()
        return sum(collector.num_sampled.values()) - before


def _make(first: int, count: int) -> list[Environment]:
    return [Crowd() for _ in range(count)]


def _policy(spec: BehaviorSpec) -> Policy:
    policy = make_policy(spec, NETWORK, False, 0)
    policy.load(Kind(spec, NETWORK).weights())
    return policy


def _measure(steps: int) -> Crowding:
    cycles, process = _Cycles(), psutil.Process()
    cycles.run(WARM_UP)
    resident: list[float] = []
    done, start = 0, process_time()
    for tenth in range(TENTHS):
        sizes = []
        while done < steps * (tenth + 1) / TENTHS:
            done += cycles.run(10)
            sizes.append(process.memory_info().rss / MEBIBYTE)
        resident.append(mean(sizes))
    rate = done / (process_time() - start)
    return Crowding(rate, _policy_rate(cycles.policies), _parts(cycles), done, resident)


def _policy_rate(policies: Mapping[str, Policy]) -> float:
    """Agent-steps a second of one call for each behavior, again and again."""
    count = INSTANCES * AGENTS
    seen, rewards = np.random.default_rng(0).random((count, *SEEN[0].shape), np.float32), np.zeros(count, np.float32)
    decisions = DecisionSteps(np.arange(count), (seen,), rewards)
    start = process_time()
    for _ in range(TIMED):
        for policy in policies.values():
            policy.act(decisions)
    return TIMED * len(policies) * count / (process_time() - start)


def _parts(cycles: _Cycles) -> dict[str, float]:
    """Microseconds of each part in one cycle, the rest last."""
    seconds = {"world": 0.0, "checks": 0.0, "numbering": 0.0, "policy": 0.0, "assembly": 0.0}
    policy = type(next(iter(cycles.policies.values())))
    assembling = [(Assembly, method) for method in ("end", "observe", "act", "drain", "mark_silent")]
    timed = {
        "world": [(Crowd, "step")],
        "checks": [(AnswerCheck, "check")],
        "numbering": [(PoolIds, "renumber")],
        "policy": [(policy, "act")],
        "assembly": assembling,
    }
    start = process_time()
    with _timed(timed, seconds):
        cycles.run(TIMED)
    seconds["the rest"] = process_time() - start - sum(seconds.values())
    return {part: time / TIMED * 1e6 for part, time in seconds.items()}


@contextmanager
def _timed(methods: Mapping[str, list[tuple[type, str]]], seconds: dict[str, float]) -> Iterator[None]:
    """Adds the time in these methods to their part of `seconds`."""
    before = [(owner, name, getattr(owner, name)) for pairs in methods.values() for owner, name in pairs]
    for part, pairs in methods.items():
        for owner, name in pairs:
            setattr(owner, name, _with_clock(getattr(owner, name), part, seconds))
    yield
    for owner, name, method in before:
        setattr(owner, name, method)


def _with_clock(method: Callable[..., Any], part: str, seconds: dict[str, float]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        start = process_time()
        result = method(*arguments)
        seconds[part] += process_time() - start
        return result

    return call


if __name__ == "__main__":
    limit_cpus(1)
    import torch

    torch.set_num_threads(1)
    json.dump(asdict(_measure(int(sys.argv[1]))), sys.stdout)
