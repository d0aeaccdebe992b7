"""What is measured: the same PPO task, said once and handed to every peer in its own words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import yaml

# Stable-Baselines3's defaults, given to both sides so that a change of somebody's defaults cannot bend a comparison.
LEARNING_RATE = 3e-4  # constant
GAMMA, GAE_LAMBDA = 0.99, 0.95
CLIP_RANGE = 0.2  # of the policy only: values are not clipped
VALUE_COEFFICIENT, ENTROPY_COEFFICIENT = 0.5, 0.0
MAX_GRAD_NORM = 0.5
ADAM_EPSILON = 1e-5
HIDDEN_UNITS, NUM_LAYERS = 64, 2  # tanh between them; actor and critic share nothing

SUMMARY_STEPS, CHECKPOINT_STEPS = 5_000, 25_000  # as config/ppo/CartPole.yaml has them


@dataclass(frozen=True, slots=True)
class Workload:
    """One task. total_steps is a whole number of rollouts, so that nobody steps without learning from it.

    mark: how many times Stable-Baselines3's throughput is asked for.
    """

    name: str
    environment: str  # Gymnasium's id
    num_envs: int
    num_steps: int  # of each environment in a rollout
    batch_size: int
    num_epochs: int
    is_normalized: bool  # observations and rewards
    total_steps: int
    mark: float

    @property
    def rollout_steps(self) -> int:
        """Environment steps between two updates."""
        return self.num_envs * self.num_steps

    @property
    def behavior(self) -> str:
        """The key under `behaviors`."""
        return self.environment.partition("-")[0]

    @property
    def title(self) -> str:
        """One line for a heading."""
        normalized = ", normalized observations and rewards" if self.is_normalized else ""
        return (
            f"({self.name}) PPO {self.environment}, {self.num_envs} environments, {self.num_steps} steps each,"
            f" mini-batch {self.batch_size}, {self.num_epochs} epochs{normalized}; {self.total_steps:,} steps"
        )

    def cut(self, rollouts: int) -> Workload:
        """The same task, ended after so many rollouts."""
        return replace(self, total_steps=rollouts * self.rollout_steps)


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("a", "CartPole-v1", 8, 128, 256, 4, False, 98 * 1024, 2.0),
        Workload("b", "CartPole-v1", 64, 128, 2048, 4, False, 13 * 8192, 1.7),
        Workload("c", "HalfCheetah-v5", 8, 256, 256, 10, True, 98 * 2048, 1.8),
    )
}


def configuration(workload: Workload, seed: int, results: Path, *, is_threaded: bool = False) -> str:
    """The task as a configuration file of rl-tui; run `bench` goes into `results`."""
    behavior = {
        "trainer_type": "ppo",
        "hyperparameters": {
            "batch_size": workload.batch_size,
            "buffer_size": workload.rollout_steps,
            "num_epoch": workload.num_epochs,
            "learning_rate": LEARNING_RATE,
            "learning_rate_schedule": "constant",  # those of beta and epsilon follow
            "beta": ENTROPY_COEFFICIENT,
            "epsilon": CLIP_RANGE,
            "lambd": GAE_LAMBDA,
            "value_coefficient": VALUE_COEFFICIENT,
            "value_clip": None,
            "max_grad_norm": MAX_GRAD_NORM,
            "adam_epsilon": ADAM_EPSILON,
            "joint_ratio": True,
            "normalize_advantage": "minibatch",
        },
        "network_settings": {
            "hidden_units": HIDDEN_UNITS,
            "num_layers": NUM_LAYERS,
            "activation": "tanh",
            "normalize": workload.is_normalized,
        },
        "normalize_reward": workload.is_normalized,
        "reward_signals": {"extrinsic": {"gamma": GAMMA}},
        "time_horizon": workload.num_steps,
        "max_steps": workload.total_steps,
        "summary_freq": SUMMARY_STEPS,
        "checkpoint_interval": CHECKPOINT_STEPS,
        "threaded": is_threaded,
    }
    document = {
        "behaviors": {workload.behavior: behavior},
        "env_settings": {
            "env": f"gymnasium:{workload.environment}",
            "num_envs": workload.num_envs,
            "seed": seed,
        },
        "torch_settings": {"device": "cpu"},
        "checkpoint_settings": {"run_id": "bench", "results_dir": str(results)},
    }
    return yaml.safe_dump(document, sort_keys=False)
