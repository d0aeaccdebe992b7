"""The network of a policy.

Shapes: B rows, A continuous dimensions, K branches, M memory columns, H head columns: A means, with a conditional
spread A logarithms of it, then the logits of every branch.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.learning.feature_layout import FeatureLayout, Features
from rl_tui.engine.learning.networks.body import Body
from rl_tui.engine.learning.networks.flat import placed, views
from rl_tui.engine.learning.networks.layers import linear
from rl_tui.engine.learning.networks.memory import Sequences
from rl_tui.engine.specs import ActionSpec, Float32

CONTINUOUS_GAIN, DISCRETE_GAIN = 0.2, 0.1  # ML-Agents: kaiming-normal times these


class Actor(nn.Module):
    """A body and the head of its actions. `Weights.arrays` holds its parameters by name.

    is_squashed: whether the spread of continuous actions depends on observations (SAC, whose actions are squashed
    later) or is a separate parameter, `log_sigma` f32[A] (PPO; None without continuous actions).
    """

    def __init__(
        self,
        random: np.random.Generator,
        layout: FeatureLayout,
        actions: ActionSpec,
        network: NetworkSettings,
        is_squashed: bool,
    ):
        super().__init__()
        self.actions = actions
        self.is_squashed = is_squashed
        self.memory_size = network.memory.memory_size if network.memory else 0
        self.body = Body(random, layout, network)
        numbers = actions.continuous * (2 if is_squashed else 1)
        self.head = linear(random, self.body.outputs, numbers + actions.mask_size)
        with torch.no_grad():
            self.head.weight[:numbers] *= CONTINUOUS_GAIN
            self.head.weight[numbers:] *= DISCRETE_GAIN
        has_sigma = actions.continuous > 0 and not is_squashed
        self.log_sigma = nn.Parameter(torch.zeros(actions.continuous)) if has_sigma else None

    def forward(self, features: Features, sequences: Sequences | None = None) -> Tensor:
        """The head f32[B, H]."""
        head: Tensor = self.head(self.body(features, sequences))
        return head

    def step(self, features: Features, memories: Tensor) -> tuple[Tensor, Tensor]:
        """The head f32[B, H] and the memories after it f32[B, M], of one step of B agents."""
        hidden, memories = self.body.step(features, memories)
        return self.head(hidden), memories

    def load_arrays(self, arrays: Mapping[str, Float32]) -> None:
        """Load the parameters of this module by name, in one copy to its device; other names are ignored."""
        own = dict(self.named_parameters())
        flat = placed(np.concatenate([arrays[name].reshape(-1) for name in own]), self.head.weight.device)
        with torch.no_grad():
            for name, values in views(flat, {name: tuple(each.shape) for name, each in own.items()}).items():
                own[name].copy_(values)
