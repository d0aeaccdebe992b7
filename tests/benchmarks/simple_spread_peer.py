"""Run by a Python that has Stable-Baselines3 and SuperSuit: one training with shared parameters, as JSON on stdout."""

from __future__ import annotations

import supersuit
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecMonitor

from tests.benchmarks import spread_world as world


def train(num_steps, seed):
    """Train so many steps of agents."""
    copies = supersuit.concat_vec_envs_v1(
        supersuit.pettingzoo_env_to_vec_env_v1(world.make()), world.COPIES, base_class="stable_baselines3"
    )
    torch.manual_seed(seed)
    trainer = PPO(
        "MlpPolicy",
        VecMonitor(copies),
        learning_rate=world.LEARNING_RATE,
        n_steps=world.ROLLOUT,
        batch_size=world.BATCH_SIZE,
        n_epochs=world.EPOCHS,
        gamma=world.GAMMA,
        gae_lambda=world.LAMBDA,
        clip_range=world.CLIP_RANGE,
        ent_coef=world.ENTROPY,
        vf_coef=world.VALUE,
        max_grad_norm=world.MAX_NORM,
        policy_kwargs={"net_arch": [world.HIDDEN_UNITS] * 2, "optimizer_kwargs": {"eps": world.ADAM_EPSILON}},
        device="cpu",
    )
    world.forget()
    trainer.learn(num_steps)


if __name__ == "__main__":
    torch.set_num_threads(1)
    world.run(train)
