"""Reward signals as an installed package would bring them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from rl_tui.engine.config.reward_signals import RewardSignalSettings
from rl_tui.engine.config.types import Positive
from rl_tui.engine.learning.networks.body import Body
from rl_tui.engine.learning.rewards.base import Numbers, RewardContext, RewardSignal
from rl_tui.engine.learning.rewards.learned import LearnedSignal
from rl_tui.engine.learning.rewards.settings import LearnedSettings
from rl_tui.engine.learning.transitions import Transitions
from rl_tui.engine.specs import Float32, State


class DistillationSettings(LearnedSettings):
    """Of `Distillation`."""

    implementation: ClassVar = f"{__name__}:Distillation"
    ignores_dones: ClassVar = True
    is_reevaluated: ClassVar = True

    learning_rate: Positive = 0.01


class Distillation(LearnedSignal[DistillationSettings, nn.ModuleDict]):
    """Random network distillation (Burda et al. 2018): pays for observations whose random features it cannot predict.

    It learns from a random half of every mini-batch, so that its generator matters, and counts them in a buffer.
    """

    def make_network(self) -> nn.ModuleDict:
        target, predictor = (Body(self.random, self.layout, self.settings.network_settings) for _ in range(2))
        network = nn.ModuleDict({"target": target.requires_grad_(False), "predictor": predictor})
        network.register_buffer("mini_batches", torch.zeros((), dtype=torch.int64))
        return network

    def rewards(self, transitions: Transitions) -> Tensor:
        features = self.features(transitions.next_observations)
        distance: Tensor = self.network["predictor"](features) - self.network["target"](features)
        return distance.square().sum(1)

    def loss(self, transitions: Transitions) -> tuple[Tensor, Numbers]:
        kept = torch.from_numpy(self.random.random(transitions.num_rows, np.float32) < 0.5)
        self.network.get_buffer("mini_batches").add_(1)
        loss = (self.rewards(transitions) * kept.to(self.context.device)).mean()
        return loss, {"Losses/Distillation Loss": loss}


class CountingSettings(RewardSignalSettings):
    """Of `Counting`."""

    implementation: ClassVar = f"{__name__}:Counting"
    learns: ClassVar = True
    is_reevaluated: ClassVar = True
    title: ClassVar = "Mini-Batch"


class Counting(RewardSignal):
    """Pays one more for every mini-batch so far, which it counts and keeps."""

    def __init__(self, settings: CountingSettings, context: RewardContext):
        self.seen: list[Transitions] = []

    def evaluate_transitions(self, transitions: Transitions) -> Float32:
        return np.full(transitions.num_rows, len(self.seen), np.float32)

    def update(self, transitions: Transitions) -> Numbers:
        self.seen.append(transitions)
        return {"Policy/Mini-Batches": float(len(self.seen)), "Policy/Every Other": float(len(self.seen) % 2)}

    def state(self) -> State:
        return State({}, {"count": len(self.seen)})

    def load(self, state: State) -> None:
        del self.seen[int(state.number("count")) :]
