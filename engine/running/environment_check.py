"""Checks an environment before training: its spaces, and whether it behaves as it declares.

Shapes: N agents.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from rl_tui.engine.config.adaptation import Adaptation
from rl_tui.engine.config.environment_name import EDITOR, full_name, is_of_unity
from rl_tui.engine.config.environments import has_agents, require_wrappable
from rl_tui.engine.config.wrappers import Wrapper
from rl_tui.engine.errors import ConfigError, EnvironmentFailure
from rl_tui.engine.process.vital_signs import SIGNS
from rl_tui.engine.running.call_timeout import call_with_timeout, close_unless_busy
from rl_tui.engine.running.environments import make_pool_apart
from rl_tui.engine.running.games.seats import teams_in_words
from rl_tui.engine.sampling.collector import Collector
from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.environments.observation_space import Bounded, Limited
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.sampling.pools.worker_process import START_SECONDS, start_seconds
from rl_tui.engine.sampling.random_policy import RandomPolicies, RandomPolicy
from rl_tui.engine.session.text import counted
from rl_tui.engine.specs import (
    BehaviorSpec,
    Ending,
    Observation,
    ObservationSpec,
    Policy,
    Trajectories,
)

BEHAVIOR = "Agent"  # the name of the only one
HORIZON = 16  # short, so that few steps are enough
REPEATED_ROUNDS = 50  # of steps, which a seed must reproduce
WORKER_ROUNDS = 10
SILENT_ROUNDS = 100  # without a word of an agent, after which it has left if others come
SLOW_SECONDS = 1e-3  # for a step, above which worker processes pay off
SAME_EPISODES = 10  # of equal length, above which that is no coincidence
LARGE = 100.0  # networks learn badly from larger numbers unless they are normalized


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. about: the spaces of the environment. failed: it can only be used in this process."""

    kind: Literal["about", "ok", "warning", "failed"]
    text: str


def check(
    env: str,
    kwargs: Mapping[str, object],
    num_copies: int,
    num_steps: int,
    seed: int,
    timeout: float = START_SECONDS,
    wrappers: tuple[Wrapper, ...] = (),
) -> Iterator[Finding]:
    """Make the environment, act at random and yield findings as they come. num_steps: of each agent.

    env: as in a file, also the path of a Unity player. timeout: seconds after which a call counts as hung; making the
    environment may take START_SECONDS in any case.
    Raises ConfigError, NotSupportedError and EnvironmentFailure where training is impossible.
    """
    env, is_player = full_name(env), is_of_unity(full_name(env))
    if is_player:
        kwargs = {"seed": seed, "timeout_wait": math.ceil(timeout), **kwargs}
    if not has_agents(env):
        text = "has no agents to try out. `rl-tui demonstrations info` shows what demonstrations hold"
        raise ConfigError(f"{env}: {text}")
    source = _source(env, kwargs, wrappers)
    made: list[Environment] = []

    def make(first: int, count: int) -> list[Environment]:
        made.extend(source.make(first, count))
        return made

    pool = make_pool_apart(source, make, num_copies, timeout)
    if env == EDITOR:
        yield Finding("about", "waiting for the Unity Editor: press Play in it")
    try:
        start = time.monotonic()
        SIGNS.call_seconds = start_seconds(timeout)
        call_with_timeout(SIGNS.call_seconds, pool, pool.start)
        SIGNS.call_seconds = timeout
        yield Finding(
            "ok", f"{num_copies} {'copy' if num_copies == 1 else 'copies'} made in {time.monotonic() - start:.2f} s"
        )
        for spec in pool.specs.values():
            yield from _about(spec, pool.num_agents[spec.name], num_copies, _teams(spec))
        total = num_steps * max(1, sum(pool.num_agents.values()))
        played = call_with_timeout(timeout, pool, lambda: _play(pool, total, seed))
        if not pool.specs:
            raise EnvironmentFailure(f"{env}: no behavior appeared in {total} steps: there is nothing to train")
        for name, num_rounds in played.appeared.items():
            after = f", appeared after {num_rounds} step{'s' if num_rounds != 1 else ''}"
            spec = pool.specs[name]
            yield from _about(spec, pool.num_agents[name], num_copies, f"{_teams(spec)}{after}")
        yield Finding("ok", f"{played.num_steps} random steps: shapes, types and values match the spaces")
        yield from _ranges(pool.specs, played, next((each for each in made if isinstance(each, Bounded)), None))
        yield from _departures(played)
        limit = next((each.max_episode_steps for each in made if isinstance(each, Limited)), None)
        yield from _episodes(played, num_steps, limit, source.time_limit)
        if not is_player:  # its seed is that of its start
            yield call_with_timeout(timeout, pool, lambda: _repeats(pool, seed, source.seeding))
        yield _speed(played, is_player)
    finally:
        close_unless_busy(pool, timeout)
    if not is_player:  # each has one
        yield _in_a_worker(source, seed, timeout)


def _source(env: str, kwargs: Mapping[str, object], wrappers: tuple[Wrapper, ...]) -> EnvironmentSource:
    if wrappers:
        require_wrappable(env)
    return EnvironmentSource(env, BEHAVIOR, kwargs, adaptation=Adaptation(wrappers=wrappers))


def _teams(spec: BehaviorSpec) -> str:
    """Its teams in words; empty without any."""
    return f", {teams_in_words(spec.teams)}" if spec.teams else ""


def _about(spec: BehaviorSpec, num_agents: int, num_copies: int, more: str) -> Iterator[Finding]:
    copies = f" in {num_copies} copies" if num_copies > 1 else ""
    yield Finding("about", f"{spec.name}: {counted(num_agents, 'agent')}{copies}{more}")
    for observation in spec.observations:
        goal = ", a goal" if observation.is_goal else ""
        words = f"{_shape_words(observation)}, {observation.dtype}{goal}"
        yield Finding("about", f"  observation {observation.name!r}: {words}")
    does = [f"{spec.actions.continuous} continuous"] if spec.actions.continuous else []
    does += [f"a choice of {size}" for size in spec.actions.branches]
    yield Finding("about", f"  actions: {', '.join(does)}")


def _shape_words(observation: ObservationSpec) -> str:
    match observation.shape:
        case (size,):
            return f"a vector of {size}"
        case (most, features):
            return f"a set of up to {most} entities of {features} features"
        case shape:
            return f"an image of {' x '.join(map(str, shape))} (height, width, channels)"


@dataclass(slots=True)
class _Played:
    """The results of random steps.

    appeared: behaviors that were not there at first, and after how many steps of the environment each came. lowest,
    highest: of each observation of each behavior, over all agents.
    """

    num_steps: int = 0
    num_departed: dict[str, int] = field(default_factory=dict)
    appeared: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    returns: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    num_truncated: int = 0
    rewards: set[float] = field(default_factory=set)
    lowest: dict[tuple[str, int], Observation] = field(default_factory=dict)
    highest: dict[tuple[str, int], Observation] = field(default_factory=dict)

    def add(self, behavior: str, block: Trajectories) -> None:
        """Count a block of experience."""
        self.returns += block.episode_returns.tolist()
        self.lengths += block.episode_lengths.tolist()
        self.num_truncated += int((block.endings == Ending.TRUNCATED).sum())
        self.rewards.update(block.total_rewards[:1000].tolist() if len(self.rewards) < 2 else ())
        for index, column in enumerate(block.observations):
            low, high = column.min(axis=0), column.max(axis=0)
            key = behavior, index
            self.lowest[key] = np.minimum(low, self.lowest.get(key, low))
            self.highest[key] = np.maximum(high, self.highest.get(key, high))


def _play(pool: EnvironmentPool, num_steps: int, seed: int) -> _Played:
    """Random steps through what training uses: pool, collector, assembly."""
    played, num_rounds = _Played(), -1

    def add_behavior(spec: BehaviorSpec) -> tuple[Policy, int]:
        played.appeared[spec.name] = num_rounds
        return RandomPolicy(spec, seed), HORIZON

    policies = {name: RandomPolicy(spec, seed) for name, spec in pool.specs.items()}
    collector = Collector(pool, policies, dict.fromkeys(pool.specs, HORIZON), SILENT_ROUNDS, add_behavior)
    pool.reset(seed)
    while played.num_steps < num_steps and (played.num_steps or num_rounds < num_steps):
        num_rounds += 1
        collector.receive(START_SECONDS)
        for name in pool.specs:
            if collector.is_due(name, 1):
                played.add(name, collector.drain(name))
        collector.act()
        played.num_steps = sum(collector.num_sampled.values())
    played.num_departed = {name: collector.num_departed(name) for name in pool.specs}
    played.seconds = collector.environment_seconds
    return played


def _ranges(specs: Mapping[str, BehaviorSpec], played: _Played, bounded: Bounded | None) -> Iterator[Finding]:
    """Observations outside their space, or too large to learn from as they are."""
    for (behavior, index), lowest in played.lowest.items():
        observation, highest = specs[behavior].observations[index], played.highest[behavior, index]
        name = f"observation {observation.name!r}"
        found = f"{name} had values from {lowest.min():.6g} to {highest.max():.6g}"
        bounds = None if bounded is None else bounded.observation_bounds[index]
        if bounds is not None and (
            (lowest.ravel() < bounds[0] - 1e-6).any() or (highest.ravel() > bounds[1] + 1e-6).any()
        ):
            yield Finding("warning", f"{found}, outside its space; values are not clipped")
        elif observation.dtype == "float32" and max(-lowest.min(), highest.max()) > LARGE:
            yield Finding("warning", f"{found}: network_settings.normalize: true helps with such numbers")


def _departures(played: _Played) -> Iterator[Finding]:
    """Agents that did not appear again, with an unfinished episode."""
    for name, count in played.num_departed.items():
        if count:
            left = f"{count} agent{'s' if count != 1 else ''} left without a terminal step"
            yield Finding("warning", f"{name}: {left}. Their unfinished steps are not learned from")


def _episodes(played: _Played, num_steps: int, limit: int | None, advice: str) -> Iterator[Finding]:
    """How they ended, and whether their rewards differ.

    num_steps: of each agent. limit: steps after which an episode ends, None if not known. advice: for when none ended.
    """
    if not played.lengths and limit is not None and limit >= num_steps:
        text = f"no episode ended in {played.num_steps} random steps: one may last {limit} steps of an agent"
        yield Finding("ok", f"{text}. --steps {limit + 1} plays a whole one")
    elif not played.lengths:
        text = f"no episode ended in {played.num_steps} random steps. Returns need episodes that end (terminated or"
        yield Finding("warning", f"{text} truncated): add a time limit, such as {advice}")
    else:
        means = f"mean length {np.mean(played.lengths):.1f}, mean return {np.mean(played.returns):.3f}"
        yield Finding("ok", f"{counted(len(played.lengths), 'episode')}: {means}, {played.num_truncated} truncated")
    if len(played.rewards) == 1:
        reward = next(iter(played.rewards))
        if reward == 0 or (len(played.lengths) >= SAME_EPISODES and len(set(played.lengths)) == 1):
            text = f"every reward was {reward:.6g}, and random actions never made a difference"
            yield Finding("warning", f"{text}: training begins with nothing to go by")


def _repeats(pool: EnvironmentPool, seed: int, advice: str) -> Finding:
    """Whether a reset with the same seed and the same actions give the same results. advice: for when they do not."""
    for number, (first, second) in enumerate(zip(_record(pool, seed), _record(pool, seed), strict=True)):
        if first != second:
            when = "at the reset" if number == 0 else f"after {number} steps"
            text = f"the same seed and actions gave something else {when}: a run cannot be repeated"
            return Finding("warning", f"{text}. {advice}")
    return Finding("ok", "the same seed and actions give the same episodes")


def _record(pool: EnvironmentPool, seed: int, num_rounds: int = REPEATED_ROUNDS) -> Sequence[bytes]:
    """Every observation and reward in that many rounds of steps after a reset."""
    policies = RandomPolicies(seed)
    pool.reset(seed)
    seen: list[bytes] = []
    while len(seen) <= num_rounds:
        arrived = pool.receive(START_SECONDS)
        all_steps = [steps for _, behaviors in arrived for steps in behaviors.values()]
        columns = [
            column for steps in all_steps for column in (*steps.decisions.observations, steps.decisions.total_rewards)
        ]
        seen.append(b"".join(column.tobytes() for column in columns))
        for instance, steps in arrived:
            pool.send(instance, policies.act(steps, pool.specs))
    return seen


def _speed(played: _Played, is_player: bool) -> Finding:
    per_step = played.seconds / max(played.num_steps, 1)
    where = "all players together" if is_player else "this process"
    text = f"{1 / max(per_step, 1e-9):,.0f} steps per second in {where}"
    advice = "num_envs, for several players" if is_player else "num_workers, for several processes"
    hint = f"; {advice}, makes that more" if per_step > SLOW_SECONDS else ""
    return Finding("ok", f"{text}{hint}")


def _in_a_worker(source: EnvironmentSource, seed: int, timeout: float) -> Finding:
    pool = ProcessPool(source, 1, 1, timeout)
    try:
        pool.start()
        _record(pool, seed, WORKER_ROUNDS)
    except EnvironmentFailure as failure:
        return Finding("failed", f"in a worker process (num_workers) it fails: {failure}")
    finally:
        pool.close()
    return Finding("ok", "a worker process (num_workers) can step it")
