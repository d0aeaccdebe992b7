"""Teams, groups, late behaviors, and agents that come and go: every reward is in the row of the action it is for."""

from __future__ import annotations

import time
from collections import Counter

import numpy as np
import pytest

from rl_tui.engine.experience import join_trajectories
from rl_tui.engine.learning.joint_steps import find_joint_steps
from rl_tui.engine.sampling.collector import Collector
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.pools.base import EnvironmentPool
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.sampling.pools.serial import SerialPool
from rl_tui.engine.specs import BehaviorSpec, Policy, Trajectories
from tests.deadline import DEADLINE_SECONDS
from tests.fakes import RandomPolicy
from tests.learning.rollouts import SPEC, acted
from tests.sampling.collecting.rounds import Needs, Rounds, started
from tests.sampling.skirmish import SOLDIER, STEPS, Act, replay

INSTANCES = 2


@pytest.mark.parametrize(("kind", "cut_every"), [("serial", 0), ("process", 0), ("serial", 13)])
def test_every_reward_lands_on_the_row_it_belongs_to(kind: str, cut_every: int) -> None:
    """Only unfinished segments of agents that vanished may be missing. cut_every: steps between two cuts at once."""
    source = EnvironmentSource("tests.sampling.skirmish:Skirmish", "Soldier", {})
    pool: EnvironmentPool
    pool = SerialPool("x", source.make, INSTANCES) if kind == "serial" else ProcessPool(source, INSTANCES, 2)
    happened = replay(INSTANCES)
    pool.start()
    try:
        rows = collect(pool, set(happened.credited) - happened.lost, cut_every=cut_every)
    finally:
        pool.close()
    count = Counter(rows)
    assert max(count.values()) == 1
    assert count.keys() <= set(happened.credited)
    missing = set(happened.credited) - count.keys()
    assert missing <= happened.lost
    assert len(rows) > 5_000 > 10 * len(missing) > 0
    assert {act.behavior for act in rows} == {"Soldier", "Scout"}
    assert {act.team for act in rows} == {0, 1}


@pytest.mark.parametrize(("num_workers", "num_rows"), [(2, 1), (2, 100), (1, 40)])
def test_so_does_every_reward_where_workers_act(num_workers: int, num_rows: int) -> None:
    """A row for each action, with the ids of the whole pool, though each worker numbers its own agents."""
    happened = replay(INSTANCES)
    with started("tests.sampling.skirmish:Skirmish", "Soldier", INSTANCES, num_workers) as pool:
        rounds = Rounds(pool, Needs(num_rows), horizon=7, seed=0)
        expected = set(happened.credited) - happened.lost
        num_scouting = sum(act.behavior == "Scout" for act in expected)
        most_left = num_workers * num_rows  # of a share, of either behavior
        rows: list[Act] = []

        def have_come() -> bool:
            for behavior, block in rounds.blocks:
                rows.extend(acts_of(behavior, block))
            rounds.blocks.clear()
            expected.difference_update(rows)
            return len(expected) < most_left

        rounds.until(have_come)
    count = Counter(rows)
    assert max(count.values()) == 1
    assert count.keys() <= set(happened.credited)
    may_lack_scouts = {"Scout"} if num_scouting < most_left else set()
    assert {act.behavior for act in rows} | may_lack_scouts == {"Soldier", "Scout"}
    assert {act.team for act in rows} == {0, 1}


def collect(
    pool: EnvironmentPool, expected: set[Act], blocks: list[Trajectories] | None = None, cut_every: int = 0
) -> list[Act]:
    """The rows of every block, until all that are expected have come."""

    def add_behavior(spec: BehaviorSpec) -> tuple[Policy, int]:
        return RandomPolicy(spec.actions), 7

    collector = Collector(
        pool, {"Soldier": RandomPolicy(SOLDIER.actions)}, {"Soldier": 7}, patience=20, add_behavior=add_behavior
    )
    rows: list[Act] = []
    num_steps = 0
    pool.reset(0)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while expected and time.monotonic() < deadline:
        if collector.receive(1.0):
            for behavior in pool.specs:
                while collector.is_due(behavior, 1):
                    block = collector.drain(behavior)
                    if blocks is not None:
                        blocks.append(block)
                    acts = acts_of(behavior, block)
                    expected.difference_update(acts)
                    rows += acts
            collector.act()
            num_steps += 1
            if cut_every and num_steps % cut_every == 0:
                collector.cut_once("Soldier")
    return rows


def test_the_mates_of_every_row_are_those_that_act_at_that_moment() -> None:
    """Squads gain members late, lose them early and end; here no agent vanishes, so that every mate is found,
    also one that has acted before and acts less often."""
    settings = {"end": 150, "can_vanish": False}
    happened = replay(INSTANCES, **settings)
    source = EnvironmentSource("tests.sampling.skirmish:Skirmish", "Soldier", dict(settings))
    pool = SerialPool("x", source.make, INSTANCES)
    pool.start()
    blocks: list[Trajectories] = []
    acts = collect(pool, set(happened.credited), blocks)
    rollout = join_trajectories(blocks)
    squads = happened.squads
    joint = find_joint_steps(rollout)
    assert joint.starts[-1] == len(joint.agents) > 1000
    for row, act in enumerate(acts):
        expected = squads.get((act.instance, act.group, act.step), set()) - {(act.agent, act.step)}
        seen = rollout.observations[0][joint.mates(row)].tolist()
        assert sorted(map(tuple, seen)) == sorted((act.instance, *mate, act.group) for mate in expected)
    assert len({len(joint.mates(row)) for row in range(rollout.num_rows)}) >= 5


def test_without_groups_no_row_has_mates() -> None:
    random = np.random.default_rng(0)
    joint = find_joint_steps(acted(RandomPolicy(SPEC.actions), random, [3, 2]))
    assert [len(joint.mates(row)) for row in range(5)] == [0] * 5


def acts_of(behavior: str, block: Trajectories) -> list[Act]:
    """The action of each row; the row must have its rewards, its group and its team."""
    instances, agents, steps, groups = block.observations[0].astype(np.int64).T
    np.testing.assert_array_equal(block.agent_ids.repeat(block.lengths), agents * INSTANCES + instances)
    np.testing.assert_array_equal(block.rewards, agents * STEPS + steps)
    group_rewards = np.where(groups < 0, 0, -(groups * STEPS + steps))
    own = np.zeros(block.num_rows) if block.group_rewards is None else block.group_rewards
    np.testing.assert_array_equal(own, group_rewards)
    ids = np.full(block.num_rows, -1) if block.group_ids is None else block.group_ids
    np.testing.assert_array_equal(ids, np.where(groups < 0, -1, groups * INSTANCES + instances))
    teams = np.zeros(block.num_rows, np.int64) if block.team_ids is None else block.team_ids
    columns = zip(*(c.tolist() for c in (instances, agents, steps, groups, teams)), strict=True)
    return [Act(behavior, *values) for values in columns]
