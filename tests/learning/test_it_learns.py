"""Small tasks are solved, from fixed seeds, in one thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
import torch

from rl_tui.engine import registry
from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.loading import load_config
from rl_tui.engine.learning.demonstrations import Demonstrations
from rl_tui.engine.learning.ppo.trainer import PPOTrainer
from rl_tui.engine.learning.trainer import Trainer
from rl_tui.engine.sampling.collector import Collector
from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.sampling.environments.factory import make_environments
from rl_tui.engine.sampling.pools.serial import SerialPool
from rl_tui.engine.specs import Ending, Policy
from tests.learning.rollouts import SPEC, acted

CONFIGS = Path(__file__).parents[2] / "config"
TOY_STEPS, MEMORY_STEPS, CART_POLE_STEPS = 2500, 5000, 100_000


def train(
    environments: list[Environment],
    config: BehaviorConfig,
    max_steps: int,
    seed: int,
    device: torch.device,
    demonstrations: Mapping[str, Demonstrations] = MappingProxyType({}),
    teacher: Policy | None = None,
) -> Trainer:
    """Collect and update in turn until so many steps are learned from. demonstrations: by path."""
    (behavior,) = environments[0].specs
    pool = SerialPool("test", lambda first, count: environments, len(environments))
    pool.start()
    try:
        kind = registry.implementation("trainers", config.trainer_type)
        trainer: Trainer = kind(pool.specs[behavior], config, seed, device)
        trainer.use_demonstrations(demonstrations)
        if teacher is not None:
            trainer.use_teacher(teacher)
        collector = Collector(pool, {behavior: trainer.make_policy(seed)}, {behavior: trainer.time_horizon})
        pool.reset(seed)
        step = 0
        while step < max_steps:
            collector.receive(0.0)
            while collector.is_due(behavior, trainer.rows_per_update):
                block = collector.drain(behavior)
                trainer.add(block)
                step += block.num_rows
                if trainer.is_ready():
                    trainer.update(step)
                    collector.load(behavior, trainer.weights())
            collector.act()
        return trainer
    finally:
        pool.close()


def mean_return(environments: list[Environment], policy: Policy, num_episodes: int, seed: int) -> float:
    """Over the first episodes that end, as many of each agent as of any other: short ones must not come too often."""
    (behavior,) = environments[0].specs
    pool = SerialPool("test", lambda first, count: environments, len(environments))
    pool.start()
    try:
        per_agent = -(-num_episodes // pool.num_agents[behavior])
        collector = Collector(pool, {behavior: policy}, {behavior: 1000})
        pool.reset(seed)
        returns: dict[int, list[float]] = {agent: [] for agent in range(pool.num_agents[behavior])}
        while min(len(ended) for ended in returns.values()) < per_agent:
            collector.receive(0.0)
            while collector.is_due(behavior, 1):
                block = collector.drain(behavior)
                last = np.cumsum(block.lengths)
                ended = block.endings != 0
                sums = np.add.reduceat(block.rewards, last - block.lengths)
                for agent, episode in zip(block.agent_ids[ended].tolist(), sums[ended].tolist(), strict=True):
                    returns[agent].append(episode)
            collector.act()
        return float(np.mean([episode for ended in returns.values() for episode in ended[:per_agent]]))
    finally:
        pool.close()


def toy(actions: str, num_agents: int = 16, task: str = "one-step") -> list[Environment]:
    """Go to the side that is shown: every step is an episode; the best return is 1, that of chance 0."""
    return make_environments(f"toy:{task}", "Toy", range(num_agents), {"actions": actions})


def toy_config(memory: dict[str, int] | None = None, max_steps: int = TOY_STEPS, **hyper: object) -> BehaviorConfig:
    """A small network, and an update every 128 steps."""
    known = {"batch_size": 32, "buffer_size": 128, "num_epoch": 4, "learning_rate": 5e-3, "beta": 1e-3}
    return BehaviorConfig.model_validate(
        {
            "hyperparameters": known | hyper,
            "network_settings": {"hidden_units": 16, "num_layers": 1, "memory": memory},
            "time_horizon": 8,
            "max_steps": max_steps,
        }
    )


TOY = toy_config()


@pytest.mark.learning
@pytest.mark.parametrize("actions", ["discrete", "continuous", "hybrid"])
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_one_step_task_is_solved_within_2500_steps(actions: str, seed: int, torch_device: torch.device) -> None:
    before = PPOTrainer(toy(actions)[0].specs["Toy"], TOY, seed, torch_device).make_policy(seed)
    assert mean_return(toy(actions), before, 400, seed) < 0.3
    ppo = train(toy(actions), TOY, TOY_STEPS, seed, torch_device)
    assert mean_return(toy(actions), ppo.make_policy(seed), 400, seed + 1) > 0.9


@pytest.mark.learning
def test_the_critic_explains_returns_in_the_hundreds_within_60_updates(torch_device: torch.device) -> None:
    """Episodes of one step, in which what is seen decides the return: its variance is what a constant leaves."""
    ppo = PPOTrainer(SPEC, toy_config(buffer_size=256), 1, torch_device)
    random = np.random.default_rng(1)
    for _ in range(61):
        block = acted(ppo.make_policy(1), random, [1] * 256, ending=Ending.TERMINATED)
        block = replace(block, rewards=300 + 100 * block.observations[0][:, 0])
        unexplained = ppo.loss(block)["Losses/Value Loss"] / block.rewards.var()
        ppo.add(block)
        ppo.update(0)
    assert unexplained < 0.2


@pytest.mark.learning
@pytest.mark.parametrize("actions", ["discrete", pytest.param("continuous", marks=pytest.mark.slow)])
@pytest.mark.parametrize("is_shared", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_what_was_shown_at_the_beginning_is_remembered_by_those_who_can(
    actions: str, is_shared: bool, torch_device: torch.device
) -> None:
    """The best return without memory is 0."""
    returns = []
    for memory in ({"sequence_length": 8, "memory_size": 16}, None):
        config = toy_config(memory, MEMORY_STEPS, shared_critic=is_shared)
        ppo = train(toy(actions, task="memory"), config, MEMORY_STEPS, 1, torch_device)
        returns.append(mean_return(toy(actions, task="memory"), ppo.make_policy(1), 400, seed=2))
    assert returns[0] > 0.9
    assert returns[1] < 0.2


@pytest.mark.learning
@pytest.mark.parametrize("task", ["pixels", "goal"])
@pytest.mark.parametrize("is_shared", [pytest.param(False, marks=pytest.mark.slow), True])
def test_the_side_is_found_in_an_image_and_by_a_goal(task: str, is_shared: bool, torch_device: torch.device) -> None:
    ppo = train(toy("discrete", task=task), toy_config(shared_critic=is_shared), TOY_STEPS, 1, torch_device)
    assert mean_return(toy("discrete", task=task), ppo.make_policy(1), 400, seed=2) > 0.9


@pytest.mark.slow
@pytest.mark.learning
def test_the_heaviest_of_a_set_is_found(torch_device: torch.device) -> None:
    """To guess from where one stands returns 0.25."""
    config = toy_config(max_steps=MEMORY_STEPS, shared_critic=True, learning_rate=2e-3)
    ppo = train(toy("discrete", task="entities"), config, MEMORY_STEPS, 1, torch_device)
    assert mean_return(toy("discrete", task="entities"), ppo.make_policy(1), 400, seed=2) > 0.75


@pytest.mark.slow
@pytest.mark.learning
def test_cart_pole_reaches_475_with_the_settings_of_its_preset(torch_device: torch.device) -> None:
    run = load_config(CONFIGS / "ppo" / "CartPole.yaml")
    config = run.behaviors["CartPole"]
    assert config.max_steps <= CART_POLE_STEPS

    def copies() -> list[Environment]:
        return make_environments("gymnasium:CartPole-v1", "CartPole", range(run.env_settings.num_envs), {})

    ppo = train(copies(), config, CART_POLE_STEPS, 1, torch_device)
    assert mean_return(copies(), ppo.make_policy(1), 100, seed=2) >= 475
