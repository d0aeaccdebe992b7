"""A critic that sees mates is given those of each row, and of each segment where it ended."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rl_tui.engine.config.network import MemorySettings
from rl_tui.engine.learning.agent_state import AgentState
from rl_tui.engine.learning.joint_steps import JointExperience, NextJointSteps, find_joint_steps
from rl_tui.engine.learning.value_estimates import ValueEstimator
from rl_tui.engine.specs import Ending, Trajectories
from tests.fakes import MateCritic
from tests.learning.rollouts import rewarded

MEMORY = MemorySettings(sequence_length=4, memory_size=2)


def block_of_groups() -> Trajectories:
    """Agents of three groups and of none, which begin at different times; each row sees its own number."""
    random = np.random.default_rng(0)
    lengths = random.integers(1, 12, 40)
    block = rewarded([(agent, [0.0] * int(length), Ending.CUT) for agent, length in enumerate(lengths)])
    firsts = random.integers(0, 4, len(lengths)).repeat(lengths)
    row = np.arange(block.num_rows)
    return replace(
        block,
        observations=((row + 1)[:, None].astype(np.float32),),
        memories=np.zeros((block.num_rows, MEMORY.memory_size), np.float32),
        group_ids=random.integers(-1, 3, len(lengths)).repeat(lengths),
        step_numbers=firsts + row - (np.cumsum(lengths) - lengths).repeat(lengths),
    )


def joint_experience(block: Trajectories) -> JointExperience:
    """Of a block, without actions."""
    return JointExperience(find_joint_steps(block), block.observations, np.zeros((block.num_rows, 0), np.float32))


def valued(own: float, mates: list[float]) -> list[float]:
    """What MateCritic says of an agent that sees `own`."""
    return [own, len(mates), sum(mates), sum(mate**2 for mate in mates)]


@pytest.mark.parametrize("rows_per_call", [1, 9, 1000])
@pytest.mark.parametrize(("memory", "is_shared"), [(None, False), (MEMORY, False), (MEMORY, True)])
def test_each_row_is_valued_with_its_mates(memory: MemorySettings | None, is_shared: bool, rows_per_call: int) -> None:
    block, critic, random = block_of_groups(), MateCritic(MEMORY.memory_size), np.random.default_rng(1)
    counts = random.integers(0, 4, block.num_segments)
    numbers = np.arange(1, counts.sum() + 1)
    following = random.integers(0, 99, (block.num_segments, 1)).astype(np.float32)
    estimate = ValueEstimator(critic, memory, rows_per_call, is_shared)
    joint = joint_experience(block)
    is_present = random.random(block.num_segments) < 0.5
    next_joint = NextJointSteps((numbers[:, None].astype(np.float32),), counts, is_present)
    agents = AgentState.empty(MEMORY.memory_size if memory else 0, np.float32)
    found = estimate(block.observations, (following,), block, agents, joint, next_joint)

    agent, group, step = block.agent_ids.repeat(block.lengths), block.group_ids, block.step_numbers
    assert group is not None
    assert step is not None
    everyone = list(zip(agent.tolist(), group.tolist(), step.tolist(), strict=True))
    expected = [
        valued(row + 1, [r + 1 for r, (other, *place) in enumerate(everyone) if place == own_place and other != own])
        if own_place[0] >= 0
        else valued(row + 1, [])
        for row, (own, *own_place) in enumerate(everyone)
    ]
    np.testing.assert_array_equal(found.values, expected)
    assert len({int(count) for _, count, *_ in expected}) >= 4, "rows have different numbers of mates"
    ends = np.split(numbers, counts.cumsum()[:-1])
    after = [valued(float(own), mates.tolist()) for (own,), mates in zip(following, ends, strict=True)]
    np.testing.assert_array_equal(found.next_values, after)
    assert max(critic.num_rows) <= max(rows_per_call, MEMORY.sequence_length if memory else 1)


def test_without_groups_nothing_is_seen_of_mates() -> None:
    block = replace(block_of_groups(), group_ids=None)
    estimate = ValueEstimator(MateCritic(), None, 1000, is_shared=False)
    following = np.ones((block.num_segments, 1), np.float32)
    alone = np.zeros(block.num_segments, np.int64)
    next_joint = NextJointSteps((following[:0],), alone, alone == 0)
    agents = AgentState.empty(0, np.float32)
    found = estimate(block.observations, (following,), block, agents, joint_experience(block), next_joint)
    assert not found.values[:, 1:].any()
    np.testing.assert_array_equal(found.next_values, [valued(1.0, [])] * block.num_segments)
