"""What is known of the mates of an agent whose segment ends, compared with a slow reference."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterator

import numpy as np
import pytest

from rl_tui.engine.experience import join_trajectories, take_segments
from rl_tui.engine.sampling.assembly import Assembly
from rl_tui.engine.specs import ActionSpec, BehaviorSpec, Ending, ObservationSpec, Trajectories
from tests.fakes import RandomPolicy
from tests.sampling.squads import Ended, Squads

SPEC = BehaviorSpec("Soldier", (ObservationSpec("moment", (1,)),), ActionSpec(1))


@pytest.mark.parametrize("num_episodes", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_groups_end_and_mates_go_on_as_in_a_slow_reference(num_episodes: int) -> None:
    """Early deaths, late members, other groups, different periods, and whole squads that end at once."""
    found, expected = Counter[str](), 0
    for seed, horizon in enumerate((1, 3, 7, 20)):
        world = Squads(np.random.default_rng(seed), horizon)
        for block in play(world, num_episodes // 4):
            found += compare(block, world)
        expected += world.num_episodes
    assert expected >= num_episodes
    assert (
        min(found[case] for case in ("cut", "lone death", "last death", "death", "together", "truncated"))
        > num_episodes / 40
    )


def play(world: Squads, num_episodes: int) -> Iterator[Trajectories]:
    """Every block of so many episodes, drained now and then."""
    assembly, policy = Assembly(SPEC, world.horizon), RandomPolicy(SPEC.actions)
    while world.num_episodes < num_episodes:
        steps = world.next()
        assembly.receive(steps)
        if assembly.is_full or (assembly.num_complete and world.random.random() < 0.1):
            yield assembly.drain()
        if len(steps.decisions.agent_ids):
            assembly.act(steps.decisions, policy.act(steps.decisions))
            world.act(steps.decisions)


def compare(block: Trajectories, world: Squads) -> Counter[str]:
    """Every segment is as the world knows it; returns how often each case occurred."""
    expected: dict[int, deque[Ended]] = defaultdict(deque)
    for ended in world.ended:
        expected[ended.agent].append(ended)
    cases = Counter[str]()
    assert block.group_ended is not None
    assert block.next_mate_counts is not None
    assert block.next_mate_observations is not None
    mates = np.split(block.next_mate_observations[0][:, 0], np.cumsum(block.next_mate_counts)[:-1])
    for index, agent in enumerate(block.agent_ids.tolist()):
        ended = expected[agent].popleft()
        assert block.endings[index] == ended.ending
        assert block.next_observations[0][index, 0] == ended.next_observation
        assert block.group_ended[index] == ended.group_ended
        assert sorted(mates[index].tolist()) == sorted(ended.mates)
        cases[case_of(ended)] += 1
        cases["truncated"] += ended.ending == Ending.TRUNCATED
    assert not any(expected.values()), "some segments are missing"
    world.ended.clear()
    return cases


def case_of(ended: Ended) -> str:
    if ended.ending == Ending.CUT:
        return "cut"
    if ended.group_ended:
        return "together" if ended.mates else "last death"
    return "death" if ended.mates else "lone death"


def test_mates_stay_with_their_segments_when_blocks_are_joined_and_segments_are_taken() -> None:
    world = Squads(np.random.default_rng(9), 3)
    blocks = list(play(world, 200))
    joined = join_trajectories(blocks)
    order = np.random.default_rng(0).permutation(joined.num_segments)
    taken = take_segments(joined, order)
    expected = {(ended.agent, ended.next_observation): sorted(ended.mates) for ended in world.ended}
    assert taken.next_mate_counts is not None
    assert taken.next_mate_observations is not None
    mates = np.split(taken.next_mate_observations[0][:, 0], np.cumsum(taken.next_mate_counts)[:-1])
    found = {
        (agent, float(after)): sorted(own.tolist())
        for agent, after, own in zip(taken.agent_ids.tolist(), taken.next_observations[0][:, 0], mates, strict=True)
    }
    assert len(found) == joined.num_segments > 300
    assert found == {key: expected[key] for key in found}


def test_without_groups_nothing_of_them_is_kept() -> None:
    world = Squads(np.random.default_rng(1), 5, most=1)
    steps = world.next()
    assembly, policy = Assembly(SPEC, 5), RandomPolicy(SPEC.actions)
    for _ in range(100):
        steps.decisions.group_ids = None
        assert steps.terminals is not None
        steps.terminals.group_ids = None
        assembly.receive(steps)
        if len(steps.decisions.agent_ids):
            assembly.act(steps.decisions, policy.act(steps.decisions))
            world.act(steps.decisions)
        steps = world.next()
    block = assembly.drain()
    assert (block.group_ended, block.next_mate_counts, block.next_mate_observations) == (None, None, None)
