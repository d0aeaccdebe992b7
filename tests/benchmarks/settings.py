"""What is measured: the same task, said once and handed to every peer in its own words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Self, TypeAlias

import yaml

# Stable-Baselines3's defaults, given to both sides so that changed defaults cannot bend a comparison.
LEARNING_RATE = 3e-4  # constant
GAMMA, GAE_LAMBDA = 0.99, 0.95
CLIP_RANGE = 0.2  # of the policy only: values are not clipped
VALUE_COEFFICIENT, ENTROPY_COEFFICIENT = 0.5, 0.0
MAX_GRAD_NORM = 0.5
ADAM_EPSILON = 1e-5
HIDDEN_UNITS, NUM_LAYERS = 64, 2  # tanh between them; actor and critic share nothing

SAC_BATCH_SIZE, SAC_HIDDEN_UNITS, SAC_TAU, SAC_START = 256, 256, 0.005, 100  # of its SAC; relu between the layers
PIXEL_HIDDEN_UNITS = 512  # of the layer behind its convolutions, which actor and critic share
# 64 numbers of cell state and as many that are read; (k) and (m) have ML-Agents' rollouts and networks, too
LONG_MEMORY, SHORT_MEMORY = ({"sequence_length": length, "memory_size": 128} for length in (64, 16))

SUMMARY_STEPS, CHECKPOINT_STEPS = 5_000, 25_000  # as config/ppo/CartPole.yaml has them


@dataclass(frozen=True, slots=True)
class Workload:
    """One task. total_steps is a whole number of rollouts, so that every step is learned from.

    mark: how many times Stable-Baselines3's throughput is asked for; with `memory`, how many times that of the twin
    without one.
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
    hidden_units: int = HIDDEN_UNITS
    is_visual: bool = False  # 84 x 84 x 3 bytes are seen, through the convolutions of Mnih et al. 2015
    memory: Mapping[str, int] | None = None  # of a twin, which is measured beside it instead of Stable-Baselines3

    @property
    def rollout_steps(self) -> int:
        """Environment steps between two updates."""
        return self.num_envs * self.num_steps

    @property
    def behavior(self) -> str:
        """The key under `behaviors`."""
        return behavior_of(self.environment)

    @property
    def title(self) -> str:
        """One line for a heading."""
        normalized = ", normalized observations and rewards" if self.is_normalized else ""
        return (
            f"({self.name}) PPO {self.environment}, {self.num_envs} environments, {self.num_steps} steps each,"
            f" mini-batch {self.batch_size}, {self.num_epochs} epochs{normalized}; {self.total_steps:,} steps"
        )

    def cut(self, rollouts: int) -> Self:
        """The same task, ended after so many rollouts."""
        return replace(self, total_steps=rollouts * self.rollout_steps)


@dataclass(frozen=True, slots=True)
class SoftWorkload:
    """A task for SAC with target critics, an update per step of the one environment.

    mark: how many times Stable-Baselines3's throughput is asked for.
    """

    name: str
    environment: str
    total_steps: int
    mark: float

    rollout_steps = 256  # steps that a shorter measurement is counted in

    @property
    def behavior(self) -> str:
        """The key under `behaviors`."""
        return behavior_of(self.environment)

    @property
    def title(self) -> str:
        """One line for a heading."""
        units = f"{SAC_HIDDEN_UNITS} x {SAC_HIDDEN_UNITS} units, mini-batch {SAC_BATCH_SIZE}"
        return f"({self.name}) SAC {self.environment}, {units}, an update per step; {self.total_steps:,} steps"

    def cut(self, rollouts: int) -> Self:
        """The same task, ended after so many times `rollout_steps`."""
        return replace(self, total_steps=rollouts * self.rollout_steps)


def behavior_of(environment: str) -> str:
    """The name of its behavior."""
    return environment.partition("-")[0]


AnyWorkload: TypeAlias = Workload | SoftWorkload
WORKLOADS: dict[str, AnyWorkload] = {
    workload.name: workload
    for workload in (
        Workload("a", "CartPole-v1", 8, 128, 256, 4, False, 98 * 1024, 2.0),
        Workload("b", "CartPole-v1", 64, 128, 2048, 4, False, 13 * 8192, 1.7),
        Workload("c", "HalfCheetah-v5", 8, 256, 256, 10, True, 98 * 2048, 1.8),
        SoftWorkload("i", "Pendulum-v1", 10 * 256, 1.35),
        Workload("j", "Frames-v0", 8, 128, 256, 4, False, 6 * 1024, 1.05, is_visual=True),
        Workload("k", "CartPole-v1", 8, 1280, 1024, 3, False, 10 * 10_240, 0.5, hidden_units=128, memory=LONG_MEMORY),
        Workload("l", "CartPole-v1", 8, 128, 256, 4, False, 49 * 1024, 0.5, memory=SHORT_MEMORY),
        Workload(
            "m", "LunarLander-v3", 8, 1280, 1024, 3, False, 10 * 10_240, 0.5, hidden_units=128, memory=LONG_MEMORY
        ),
    )
}


def configuration(
    workload: AnyWorkload,
    seed: int,
    results: Path,
    *,
    is_threaded: bool = False,
    precision: Literal["float32", "bfloat16"] = "float32",
    has_memory: bool = False,
    device: str = "cpu",
) -> str:
    """The task as a configuration file of rl-tui; run `bench` goes into `results`."""
    behavior = _sac(workload) if isinstance(workload, SoftWorkload) else _ppo(workload, precision, has_memory)
    behavior |= {
        "reward_signals": {"extrinsic": {"gamma": GAMMA}},
        "max_steps": workload.total_steps,
        "summary_freq": SUMMARY_STEPS,
        "checkpoint_interval": CHECKPOINT_STEPS,
        "threaded": is_threaded,
    }
    is_visual = isinstance(workload, Workload) and workload.is_visual
    document = {
        "behaviors": {workload.behavior: behavior},
        "env_settings": {
            "env": "toy:frames" if is_visual else f"gymnasium:{workload.environment}",
            "num_envs": workload.num_envs if isinstance(workload, Workload) else 1,
            "seed": seed,
        },
        "torch_settings": {"device": device},
        "checkpoint_settings": {"run_id": "bench", "results_dir": str(results)},
    }
    return yaml.safe_dump(document, sort_keys=False)


def _ppo(workload: Workload, precision: str, has_memory: bool) -> dict[str, object]:
    network: dict[str, object] = {
        "hidden_units": workload.hidden_units,
        "num_layers": NUM_LAYERS,
        "activation": "tanh",
        "normalize": workload.is_normalized,
    }
    if workload.is_visual:
        network = {
            "hidden_units": PIXEL_HIDDEN_UNITS,
            "num_layers": 1,
            "activation": "relu",
            "vis_encode_type": "nature_cnn",
            "precision": precision,
        }
    if has_memory:
        assert workload.memory is not None
        network["memory"] = dict(workload.memory)
    return {
        "trainer_type": "ppo",
        "hyperparameters": {
            "batch_size": workload.batch_size,
            "buffer_size": workload.rollout_steps,
            "num_epoch": workload.num_epochs,
            "shared_critic": workload.is_visual,
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
        "network_settings": network,
        "normalize_reward": workload.is_normalized,
        "time_horizon": workload.num_steps,
    }


def _sac(workload: SoftWorkload) -> dict[str, object]:
    return {
        "trainer_type": "sac",
        "hyperparameters": {
            "batch_size": SAC_BATCH_SIZE,
            "buffer_size": workload.total_steps,
            "buffer_init_steps": SAC_START,
            "learning_rate": LEARNING_RATE,
            "tau": SAC_TAU,
            "steps_per_update": 1,
            "init_entcoef": 1.0,
            "target_q": True,
        },
        "network_settings": {"hidden_units": SAC_HIDDEN_UNITS, "num_layers": 2, "activation": "relu"},
    }
