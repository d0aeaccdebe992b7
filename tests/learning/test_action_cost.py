"""How large actions are, and how much of the rewards is their cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rl_tui.engine.learning.action_cost import COST_SHARE, MAGNITUDE, ActionCost
from rl_tui.engine.specs import Float32
from tests.running.runs import block

DRAWN = np.random.Generator(np.random.PCG64(1)).standard_normal((600, 2)).astype(np.float32)
PLACES = np.random.Generator(np.random.PCG64(2)).standard_normal(600).astype(np.float32)


def metrics(actions: Float32, rewards: Float32, size: int = 50) -> dict[str, float]:
    """Of blocks of so many rows."""
    cost = ActionCost()
    for start in range(0, len(rewards), size):
        part = slice(start, start + size)
        rows = block(len(rewards[part]), 0.0)
        cost.add(replace(rows, continuous_actions=actions[part], rewards=rewards[part].astype(np.float32)))
    return cost.metrics


def test_rewards_that_are_only_a_cost_of_actions_are_explained_by_them() -> None:
    """Those are of what reaches the environment: it gets no more than 3."""
    actions = 2 * DRAWN
    squares = np.square(np.clip(actions, -3, 3)).sum(axis=1)
    found = metrics(actions, 1000.0 - 0.1 * squares)
    assert found[COST_SHARE] == pytest.approx(1.0, abs=1e-6)
    assert found[MAGNITUDE] == pytest.approx(float(np.sqrt(squares.mean() / 2)), rel=1e-6)


@pytest.mark.parametrize(("cost", "expected"), [(0.0, 0.0), (0.25, 0.5), (-0.25, 0.0)])
def test_share_is_that_of_the_variance_and_none_where_larger_actions_are_rewarded(cost: float, expected: float) -> None:
    squares = np.square(np.clip(DRAWN, -3, 3)).sum(axis=1)
    noise = PLACES * (0.25 * squares.std() if cost else 1.0)
    assert metrics(DRAWN, noise - cost * squares)[COST_SHARE] == pytest.approx(expected, abs=0.05)


def test_result_does_not_depend_on_the_blocks() -> None:
    rewards = PLACES - 0.1 * np.square(DRAWN).sum(axis=1) + 1e3
    assert metrics(DRAWN, rewards, 600) == pytest.approx(metrics(DRAWN, rewards, 7), rel=1e-6)


def test_there_is_no_share_where_nothing_varies_and_nothing_at_all_without_continuous_actions() -> None:
    assert set(metrics(DRAWN, np.ones(600, np.float32))) == {MAGNITUDE}
    assert metrics(np.empty((600, 0), np.float32), PLACES) == {}
    assert ActionCost().metrics == {}
