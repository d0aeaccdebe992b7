"""A policy as a torch module, from which exports make graphs.

Shapes: B rows, A continuous dimensions, S choices of all branches, M memory columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor, nn

from rl_tui.engine.learning.acting.distributions import ACTION_LIMIT
from rl_tui.engine.learning.feature_layout import FeatureLayout
from rl_tui.engine.specs import BehaviorSpec, Weights


class PolicyOutputs(NamedTuple):
    """The distribution of actions, and the next memories."""

    mean: Tensor  # f32[B, A], before any bounds
    sigma: Tensor  # f32[B, A], or f32[A] where it depends on nothing
    logits: Tensor  # f32[B, S] of all branches, not masked
    memories: Tensor  # f32[B, M]


class PolicyModule(nn.Module, ABC):
    """What a policy computes from observations, on the CPU. Used by one thread; copied with `copy.deepcopy` before
    anything is loaded.

    memory_size: M. is_squashed: continuous actions are the tanh of what is drawn; else it is clipped to +-3 and divided
    by that. A class that bounds them in another way defines `bounded` and `unbounded`.
    """

    memory_size: int = 0
    is_squashed: bool = False

    def __init__(self, spec: BehaviorSpec):
        super().__init__()
        self.spec = spec
        self.layout = FeatureLayout(spec.observations)  # which observations it reads as vectors

    @abstractmethod
    def load(self, weights: Weights) -> None:
        """Compute with a copy of these weights, which `Trainer.weights` has returned."""

    @abstractmethod
    def forward(self, observations: Sequence[Tensor], memories: Tensor) -> PolicyOutputs:
        """Observations: vectors f32[B, D] and sets f32[B, N, F] as observed, images f32[B, C, H, W], those of bytes
        from 0 to 1. memories: f32[B, M].

        In operations that ONNX knows, with the type of its inputs: exports are checked in float64, too.
        """

    def bounded(self, drawn: Tensor) -> Tensor:
        """Actions f32[B, A] in [-1, 1], as the environment receives them, of what was drawn."""
        if self.is_squashed:
            return drawn.tanh().clamp(-1, 1)  # onnxruntime's tanh reaches 1.0000002
        return drawn.clamp(-ACTION_LIMIT, ACTION_LIMIT) / ACTION_LIMIT

    def unbounded(self, actions: Tensor) -> Tensor:
        """The inverse of `bounded`, strictly between its bounds."""
        return actions.atanh() if self.is_squashed else actions * ACTION_LIMIT
