"""Reward signals as an installed package would bring them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from rl_tui.engine.config.reward_signals import RewardSignalSettings
from rl_tui.engine.config.types import Positive
from rl_tui.engine.learning.feature_layout import FeatureLayout
from rl_tui.engine.learning.networks.body import Body
from rl_tui.engine.learning.networks.flat import FlatParameters
from rl_tui.engine.learning.optimization import GradientStep
from rl_tui.engine.learning.random_generators import generator_state, load_generator
from rl_tui.engine.learning.rewards.base import Numbers, RewardContext, RewardSignal
from rl_tui.engine.learning.transitions import Transitions
from rl_tui.engine.specs import Float32, State


class DistillationSettings(RewardSignalSettings):
    """Of `Distillation`."""

    implementation: ClassVar = f"{__name__}:Distillation"
    learns: ClassVar = True
    ignores_dones: ClassVar = True
    is_reevaluated: ClassVar = True

    learning_rate: Positive = 0.01


class Distillation(RewardSignal):
    """Random network distillation (Burda et al. 2018): pays for observations whose random features it cannot predict.

    It learns from a random half of every mini-batch, so that its generator matters.
    """

    def __init__(self, settings: DistillationSettings, context: RewardContext):
        self._learning_rate = settings.learning_rate
        self._layout = FeatureLayout(context.spec.observations)
        self._random = np.random.Generator(np.random.PCG64(context.seed))
        self._target, self._predictor = (Body(self._random, self._layout, settings.network_settings) for _ in range(2))
        self._fixed = FlatParameters(self._target, context.device)
        self._learned = FlatParameters(self._predictor, context.device)
        self._step = GradientStep(self._learned, 1e-8, None)

    @property
    def num_parameters(self) -> int:
        return self._step.num_parameters

    def _errors(self, transitions: Transitions) -> Tensor:
        """f32[B]."""
        features = tuple(map(self._learned.place, self._layout.split(transitions.next_observations)))
        with torch.no_grad():
            target = self._target(features)
        return (self._predictor(features) - target).square().sum(1)

    def evaluate_transitions(self, transitions: Transitions) -> Float32:
        with torch.no_grad():
            return self._errors(transitions).cpu().numpy()

    def update(self, transitions: Transitions) -> Numbers:
        kept = self._learned.place(self._random.random(transitions.num_rows, np.float32) < 0.5)
        loss = (self._errors(transitions) * kept).mean()
        self._learned.gradient.zero_()
        loss.backward()
        self._step(self._learned.gradient, self._learning_rate)
        return {"Losses/Distillation Loss": loss}

    def state(self) -> State:
        parts = {"target": State(self._fixed.arrays()), "predictor": self._step.state()}
        return State.merge(parts | {"random": generator_state(self._random)})

    def load(self, state: State) -> None:
        self._fixed.load(state.part("target").tensors)
        self._step.load(state.part("predictor"))
        load_generator(self._random, state.part("random"))


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
