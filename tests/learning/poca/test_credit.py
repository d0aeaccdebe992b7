"""Values, baselines and advantages of 2,000 episodes of groups, against a slow reference written from the paper."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.learning.on_policy.rollout import Rollout
from rl_tui.engine.learning.poca.trainer import POCATrainer
from rl_tui.engine.learning.sync import ONE_RANK
from tests.learning.poca.group_episodes import SPEC, Groups
from tests.learning.poca.reference import GAMMA, LAMBDA, Critic, credit


@pytest.fixture(scope="module")
def trainer() -> POCATrainer:
    settings = {
        "trainer_type": "poca",
        "hyperparameters": {"batch_size": 500, "lambd": LAMBDA, "normalize_advantage": "none"},
        "network_settings": {"hidden_units": 8, "num_layers": 2},
        "reward_signals": {"extrinsic": {"gamma": GAMMA}},
    }
    return POCATrainer(SPEC, BehaviorConfig.model_validate(settings), 1, torch.device("cpu"))


@pytest.mark.parametrize("episodes", [200, pytest.param(2000, marks=pytest.mark.slow)])
def test_credit_is_that_of_the_paper(trainer: POCATrainer, episodes: int) -> None:
    world = Groups(seed=3, num_groups=episodes // 20)
    block = world.experience(num_steps=330)
    assert len(world.lives) >= episodes
    assert max(len(lives) for lives in world.lives.values()) > 4, "some agents joined late"
    rollout = Rollout(block, trainer._evaluate(block))
    trainer._begin_update(rollout)
    prepared = trainer._prepare(rollout, ONE_RANK)
    critic = trainer._network.networks.critic
    reference = Critic({name: array.detach().numpy() for name, array in critic.named_parameters()}, critic.largest)
    expected = {}
    for lives in world.lives.values():
        expected |= credit(lives, reference)
    assert len(expected) == block.num_rows
    values, baselines, returns = np.array([expected[seen.tobytes()] for seen in block.observations[0]]).T
    near = {"rtol": 1e-4, "atol": 1e-4}
    np.testing.assert_allclose(prepared.columns["values"][:, 0], values, **near)
    np.testing.assert_allclose(prepared.columns["baselines"][:, 0], baselines, **near)
    np.testing.assert_allclose(prepared.columns["returns"][:, 0], returns, **near)
    np.testing.assert_allclose(prepared.columns["advantage"], returns - baselines, rtol=1e-4, atol=2e-4)
