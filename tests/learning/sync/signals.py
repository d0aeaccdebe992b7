"""A reward signal that learns on several ranks."""

from __future__ import annotations

from typing import ClassVar

from rl_tui.engine.config.reward_signals import RewardSignalSettings
from rl_tui.engine.learning.rewards.base import Numbers, RewardContext
from rl_tui.engine.learning.transitions import Transitions
from rl_tui.engine.specs import State
from tests.learning.rewards.signals import Distillation, DistillationSettings


class SharedSettings(DistillationSettings):
    """Of `SharedDistillation`."""

    implementation: ClassVar = f"{__name__}:SharedDistillation"


class SharedDistillation(Distillation):
    """Learns from all rows, and averages its gradients over ranks."""

    def __init__(self, settings: RewardSignalSettings, context: RewardContext):
        assert isinstance(settings, SharedSettings)
        super().__init__(settings, context)
        self._sync = context.sync

    def update(self, transitions: Transitions) -> Numbers:
        loss = self._errors(transitions).mean()
        self._learned.gradient.zero_()
        loss.backward()
        self._sync.average_gradients([self._learned.gradient], transitions.num_rows)
        self._step(self._learned.gradient, self._learning_rate)
        return {"Losses/Distillation Loss": loss}

    def state(self) -> State:
        """Without a generator, which nothing uses."""
        return State.merge({"target": State(self._fixed.arrays()), "predictor": self._step.state()})
