"""A reward signal that learns on several ranks what one process would."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from rl_tui.engine.learning.rewards.base import Numbers
from rl_tui.engine.learning.transitions import Transitions
from tests.learning.rewards.signals import Distillation, DistillationSettings


class SharedSettings(DistillationSettings):
    """Of `SharedDistillation`."""

    implementation: ClassVar = f"{__name__}:SharedDistillation"


class SharedDistillation(Distillation):
    """In float64, as the trainers. It learns from all rows: what is drawn differs between ranks."""

    def make_network(self) -> nn.ModuleDict:
        return super().make_network().double()

    def loss(self, transitions: Transitions) -> tuple[Tensor, Numbers]:
        loss = self.rewards(transitions).mean()
        return loss, {"Losses/Distillation Loss": loss}
