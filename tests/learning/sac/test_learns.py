"""SAC solves small tasks, from fixed seeds, in one thread."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.learning.sac.trainer import SACTrainer
from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.sampling.environments.factory import make_environments
from tests.benchmarks.hybrid_actions import WorldAsEnvironment, behavior
from tests.benchmarks.hybrid_scenes import DISCRETE, HYBRID, World
from tests.learning.test_it_learns import mean_return, train

STEPS = 2000


def toy(task: str, num_agents: int = 8, **kwargs: object) -> list[Environment]:
    return make_environments(f"toy:{task}", "Toy", range(num_agents), kwargs)


def config(memory: dict[str, int] | None = None, **hyper: object) -> BehaviorConfig:
    """A few updates of a small network; the deterministic policy is what is judged."""
    return BehaviorConfig.model_validate(
        {
            "trainer_type": "sac",
            "hyperparameters": {
                "batch_size": 64,
                "buffer_size": 4000,
                "learning_rate": 5e-3,
                "tau": 0.02,
                "init_entcoef": 0.1,
                "steps_per_update": 4,
                **hyper,
            },
            "network_settings": {"hidden_units": 32, "num_layers": 1, "memory": memory, "deterministic": False},
            "time_horizon": 8,
            "max_steps": STEPS,
        }
    )


@pytest.mark.learning
@pytest.mark.parametrize("target_q", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "actions", [*(pytest.param(kind, marks=pytest.mark.slow) for kind in ("discrete", "continuous")), "hybrid"]
)
def test_the_one_step_task_is_solved_within_2000_steps(
    actions: str, target_q: bool, torch_device: torch.device
) -> None:
    settings = config(target_q=target_q)
    before = SACTrainer(toy("one-step", actions=actions)[0].specs["Toy"], settings, 1, torch_device)
    assert mean_return(toy("one-step", actions=actions), before.make_policy(1), 400, 1) < 0.3
    sac = train(toy("one-step", actions=actions), settings, STEPS, 1, torch_device)
    assert mean_return(toy("one-step", actions=actions), sac.make_policy(1), 400, 2) > 0.85


@pytest.mark.slow
@pytest.mark.learning
@pytest.mark.parametrize("target_q", [False, True])
def test_what_was_shown_at_first_only_is_remembered(target_q: bool, torch_device: torch.device) -> None:
    """Without its memory a policy returns 0."""
    settings = config(memory={"sequence_length": 8, "memory_size": 32}, target_q=target_q, batch_size=128)
    sac = train(toy("memory", delay=3), settings, 3000, 1, torch_device)
    assert mean_return(toy("memory", delay=3), sac.make_policy(1), 400, 2) > 0.8


@pytest.mark.slow
@pytest.mark.learning
@pytest.mark.parametrize(("scene", "kind"), [("no masks", HYBRID), ("goal", DISCRETE)])
def test_no_agent_puts_off_the_end_of_its_episode_for_the_entropy_of_further_choices(
    scene: str, kind: str, torch_device: torch.device
) -> None:
    """The goal pays 1; agents that are rewarded for entropy learn to wait next to it."""
    world = World(scene, kind, seed=1)
    train([WorldAsEnvironment(world)], BehaviorConfig.model_validate(behavior(scene)), 4500, 1, torch_device)
    assert np.mean([earned for step, earned in world.episodes if step > 3000]) > 0.5
