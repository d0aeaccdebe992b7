"""A layer whose weights depend on a goal.

Shapes: B rows, I inputs, O outputs, G goal columns; T twins (or none of that axis).
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from rl_tui.engine.learning.networks.layers import ACTIVATIONS, Layers
from rl_tui.engine.learning.networks.numpy.dense import Activation


class ConditionedLayer(nn.Module):
    """A layer and its activation, whose weights a network of two layers makes from the row's goal.

    A hypernetwork (Ha et al. 2016) with ML-Agents' layers and initial values; `base`, the part of the weights that is
    the same for every goal, and the bias begin at zero.
    """

    def __init__(
        self,
        random: np.random.Generator,
        inputs: int,
        outputs: int,
        goals: int,
        activation: Activation,
        twins: int | None = None,
    ):
        super().__init__()
        self._activate = ACTIVATIONS[activation]
        self.goal_layers = Layers(random, [goals, outputs, outputs], activation, twins=twins)
        axis = () if twins is None else (twins,)
        bound = np.float32(math.sqrt(1 / (outputs * inputs)))
        made = random.random((*axis, outputs, inputs * outputs), np.float32)
        self.makers = nn.Parameter(torch.from_numpy((2 * made - 1) * bound))
        self.base = nn.Parameter(torch.zeros(*axis, inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(*axis, 1, outputs))

    def forward(self, hidden: Tensor, goals: Tensor) -> Tensor:
        """f32[B, O] of f32[B, I] and f32[B, G], or f32[T, B, O] of f32[B, I] or f32[T, B, I] and f32[B, G]."""
        *axis, inputs, outputs = self.base.shape
        features = functional.layer_norm(self.goal_layers(goals), (outputs,))
        weights = (features @ self.makers).view(*axis, -1, inputs, outputs)
        result = (hidden.unsqueeze(-2) @ weights).squeeze(-2) + hidden @ self.base + self.bias
        return self._activate(result)
