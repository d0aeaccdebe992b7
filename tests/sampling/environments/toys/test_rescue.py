"""The tunnel, its wheel and its gate: who is lost, who leaves, and what a group earns."""

from __future__ import annotations

import numpy as np
import pytest

from rl_tui.engine.sampling.environments.toys.rescue import CELLS, COST, STEPS, Rescue
from rl_tui.engine.specs import Actions, DecisionSteps, Int64, Steps
from tests.sampling.environments.toys.playing import make

LEFT, STAY, RIGHT = range(3)


def acts(choices: Int64) -> dict[str, Actions]:
    return {"B": Actions(np.zeros((len(choices), 0), np.float32), choices.reshape(-1, 1))}


def begin(num_games: int, agents: int = 3) -> tuple[Rescue, DecisionSteps]:
    world = Rescue("B", num_games, agents)
    return world, world.reset(1)["B"].decisions


def leftmost_goes_left(seen: np.ndarray) -> Int64:
    """Until the gate is open."""
    place, is_open, mates, is_there = seen[:, 0], seen[:, 1], *np.split(seen[:, 3:], 2, axis=1)
    others = np.where(is_there > 0, mates, np.inf)
    return np.where((is_open == 0) & (place < others.min(1)), LEFT, RIGHT)


@pytest.mark.parametrize("agents", [2, 3, 5])
def test_one_stays_behind_and_all_others_leave(agents: int) -> None:
    world, decisions = begin(50, agents)
    own, shared, gone = np.zeros(50), np.zeros(50), np.zeros(50, np.int64)
    while (gone < agents).any():
        steps: Steps = world.step(acts(leftmost_goes_left(decisions.observations[0])))["B"]
        decisions, ended = steps.decisions, steps.terminals
        if ended is None:
            continue
        assert ended.group_ids is not None
        assert ended.group_rewards is not None
        for group in set(ended.group_ids.tolist()) & set(np.flatnonzero(gone < agents).tolist()):
            rows = ended.group_ids == group
            own[group] += ended.rewards[rows].sum()
            shared[group] += ended.group_rewards[rows][0]
            gone[group] += rows.sum()
    np.testing.assert_allclose(own, -COST, rtol=1e-6)
    np.testing.assert_allclose(shared, 1, rtol=1e-6)


def test_the_gate_is_shut_until_the_wheel_is_turned_and_water_ends_the_episode() -> None:
    world, decisions = begin(4)
    for step in range(1, STEPS + 1):
        steps = world.step(acts(np.full(len(decisions.agent_ids), RIGHT)))["B"]
        decisions = steps.decisions
        assert (steps.terminals is None) == (step < STEPS)
        if step == STEPS - 1:
            assert (decisions.observations[0][:, 0] == np.float32((CELLS - 1) / CELLS)).all()
            assert not decisions.observations[0][:, 1].any()
    assert steps.terminals is not None
    assert sorted(steps.terminals.agent_ids.tolist()) == list(range(12))
    assert not steps.terminals.rewards.any()
    assert not steps.terminals.truncated.any()
    assert len(decisions.agent_ids) == 12, "they begin again"


def test_those_who_have_gone_are_seen_no_longer() -> None:
    world, decisions = begin(1)
    while len(decisions.agent_ids) == 3:
        decisions = world.step(acts(leftmost_goes_left(decisions.observations[0])))["B"].decisions
    seen = decisions.observations[0]
    assert seen[:, 1].all(), "the gate is open"
    np.testing.assert_array_equal(seen[:, 3:], np.stack([seen[::-1, 0], [1, 1], [1, 1], [0, 0]], 1))


def test_it_is_drawn() -> None:
    world, _ = begin(1)
    picture = world.render()
    assert picture is not None
    assert picture.shape[2] == 3
    world.close()


def test_a_group_has_at_least_two_agents() -> None:
    with pytest.raises(Exception, match=r"env_kwargs\.agents: must be a whole number from 2 to 7, got 1"):
        make("rescue", 1, agents=1)
