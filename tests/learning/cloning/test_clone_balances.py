"""A clone does what its expert does, from a fixed seed, in one thread."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.learning.bc.settings import HELD_OUT
from rl_tui.engine.learning.bc.trainer import BCTrainer
from rl_tui.engine.sampling.collector import Collector
from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.sampling.environments.factory import make_environments
from rl_tui.engine.sampling.pools.serial import SerialPool
from rl_tui.engine.specs import Actions, DecisionSteps, Policy
from tests.learning.demonstrations import Recorded, recorded
from tests.learning.test_it_learns import mean_return, train
from tests.learning.written import Written

BEHAVIOR, EPISODES, LONGEST = "CartPole", 8, 500


def expert(decisions: DecisionSteps) -> Actions:
    """Pushes the cart to the side to which the pole falls: it never does within an episode."""
    position, velocity, angle, turning = decisions.observations[0].T
    chosen = (0.05 * position + 0.1 * velocity + 3 * angle + turning > 0).astype(np.int64)[:, None]
    return Actions(np.zeros((len(chosen), 0), np.float32), chosen)


def copies() -> list[Environment]:
    return make_environments("gymnasium:CartPole-v1", BEHAVIOR, range(EPISODES), {})


def demonstrations(policy: Policy) -> Recorded:
    """An episode of each copy."""
    environments = copies()
    pool = SerialPool("test", lambda first, count: environments, len(environments))
    pool.start()
    try:
        collector = Collector(pool, {BEHAVIOR: policy}, {BEHAVIOR: LONGEST})
        pool.reset(1)
        while not collector.is_due(BEHAVIOR, EPISODES * LONGEST):
            collector.receive(0.0)
            collector.act()
        return recorded(collector.drain(BEHAVIOR), is_whole=True)
    finally:
        pool.close()


def cloned(steps: Recorded, device: torch.device) -> tuple[float, float]:
    """The mean return of the policy that learned from these, and its last loss on what was held out."""
    config = BehaviorConfig.model_validate(
        {
            "trainer_type": "bc",
            "hyperparameters": {"demo_path": "cart.demo", "batch_size": 64, "learning_rate": 3e-3},
            "network_settings": {"hidden_units": 32, "num_layers": 1, "normalize": True},
            "max_steps": 40000,
        }
    )
    bc = BCTrainer(copies()[0].specs[BEHAVIOR], config, 1, device)
    bc.use_demonstrations({"cart.demo": steps})
    step, reported = 0, {}
    while step < config.max_steps:
        reported = bc.update(step)
        step += bc.rows_per_update
    return mean_return(copies(), bc.make_policy(1, is_greedy=True), 16, seed=2), reported[HELD_OUT]


@pytest.mark.learning
def test_a_clone_balances_as_its_expert_does_and_not_from_permuted_actions(torch_device: torch.device) -> None:
    steps = demonstrations(Written(expert))
    assert steps.num_steps == EPISODES * LONGEST
    found, loss = cloned(steps, torch_device)
    assert found > 0.9 * LONGEST
    assert loss < 0.3
    steps.discrete = np.random.default_rng(0).permutation(steps.discrete)
    permuted, loss = cloned(steps, torch_device)
    assert permuted < 0.3 * LONGEST
    assert loss > 0.6


@pytest.mark.learning
@pytest.mark.parametrize(
    ("trainer", "strength", "hyper"),
    [
        ("ppo", 10, {"buffer_size": 512, "batch_size": 128, "learning_rate": 3e-4}),
        ("sac", 1, {"buffer_size": 5000, "batch_size": 64, "steps_per_update": 64, "learning_rate": 3e-3}),
    ],
)
def test_demonstrations_beside_rewards_balance_long_before_rewards_alone(
    trainer: str, strength: float, hyper: dict[str, object], torch_device: torch.device
) -> None:
    steps, returns = demonstrations(Written(expert)), []
    own = {"demo_path": "cart.demo", "samples_per_update": 2048, "batch_size": 64, "strength": strength}
    for cloning in (own, None):
        config = BehaviorConfig.model_validate(
            {
                "trainer_type": trainer,
                "hyperparameters": hyper,
                "network_settings": {"hidden_units": 32, "num_layers": 1, "normalize": True},
                "behavioral_cloning": cloning,
                "time_horizon": 64,
                "max_steps": 100_000,
            }
        )
        made = train(copies(), config, 2048, 1, torch_device, {"cart.demo": steps})
        returns.append(mean_return(copies(), made.make_policy(1, is_greedy=True), 16, seed=2))
    assert returns[0] > 0.8 * LONGEST
    assert returns[1] < 0.5 * LONGEST
