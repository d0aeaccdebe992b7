"""The torch module that is exported as a graph, with the names, shapes and constants that ML-Agents' runtimes expect.

Shapes: B rows, A continuous dimensions, K branches, C choices of one branch, S mask columns (the sum of the branch
sizes), M memory columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

from rl_tui.engine.export import graph_names as names
from rl_tui.engine.export.graph_names import GraphKind, input_names, output_names
from rl_tui.engine.learning.distributions import mask_logits
from rl_tui.engine.learning.policy_module import PolicyModule

_INT64 = 7  # TensorProto.INT64


class Distribution(NamedTuple):
    """The distribution of actions, and the next memories."""

    mean: Tensor  # f32[B, A], before any bounds
    sigma: Tensor  # f32[B, A], or f32[A] where it depends on nothing
    branches: Sequence[Tensor]  # masked logits f32[B, C] of each
    memories: Tensor  # f32[B, M]


class ExportedPolicy(nn.Module):
    """Every output of a policy, as a function of observations, action mask and memories.

    Only the exported graph is random. In torch itself the sampled actions are the most likely ones, so that tracing
    does not use the global generator that the rest of the process shares.
    """

    def __init__(self, module: PolicyModule, kind: GraphKind = "unity"):
        """module: with the weights to export."""
        super().__init__()
        self.spec = module.spec
        self.module = module
        self.memory_size = module.memory_size
        self.input_names = input_names(self.spec, self.memory_size)
        self.output_names = output_names(self.spec, self.memory_size, kind)
        constants = {
            names.VERSION: [names.VERSION_NUMBER],
            names.MEMORY_SIZE: [self.memory_size],
            names.CONTINUOUS_SHAPE: [self.spec.actions.continuous],
            names.DISCRETE_SHAPE: [self.spec.actions.branches],
        }
        for name, value in constants.items():
            self.register_buffer(f"constant_{name}", torch.tensor(value, dtype=torch.float32))
        self.eval().requires_grad_(False)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """The outputs named by `output_names` for the inputs named by `input_names`.

        Inputs: vectors and sets as observed, images f32[B, C, H, W] from 0 to 1 where they are bytes, f32[B, S] of 0
        and 1, 1 = allowed, f32[B, 1, M]. Outputs: actions f32[B, A] in [-1, 1] and i64[B, K], constants f32[1], the
        branch sizes f32[1, K], memories f32[B, 1, M].
        """
        mean, sigma, branches, memories = self.distribution(*inputs)
        outputs = {name: self.constant(name) for name in names.CONSTANTS}
        outputs[names.MEMORY] = memories.unsqueeze(1)
        if self.spec.actions.continuous:
            outputs[names.CONTINUOUS] = self.module.bounded(mean + _standard_normal(mean) * sigma)
            outputs[names.DETERMINISTIC_CONTINUOUS] = self.module.bounded(mean)
        if branches:
            outputs[names.DISCRETE] = torch.cat([_draw(logits) for logits in branches], 1)
            outputs[names.DETERMINISTIC_DISCRETE] = torch.stack([logits.argmax(1) for logits in branches], 1)
        return tuple(outputs[source] for source in self.output_names.values())

    def constant(self, name: str) -> Tensor:
        """The constant output of that name: f32[1], or f32[1, K] for branch sizes."""
        return self.get_buffer(f"constant_{name}")

    def distribution(self, *inputs: Tensor) -> Distribution:
        """The distribution for these inputs, whose shapes `forward` lists."""
        actions, count = self.spec.actions, len(self.spec.observations)
        nothing = inputs[0].new_empty((inputs[0].shape[0], 0))
        remembered = inputs[-1].squeeze(1) if self.memory_size else nothing
        mean, sigma, logits, memories = self.module(inputs[:count], remembered)
        if not actions.branches:
            return Distribution(mean, sigma, (), memories)
        branches = torch.split(mask_logits(logits, inputs[count]), list(actions.branches), 1)
        return Distribution(mean, sigma, branches, memories)


class _Graph(Protocol):
    """The graph that torch's TorchScript exporter passes to a symbolic function."""

    def op(self, name: str, *inputs: torch.Value, **attributes: int) -> torch.Value:
        """Append an ONNX node and return its output."""


class _StandardNormal(torch.autograd.Function):
    """Standard normal noise in a graph, zeros in torch."""

    @staticmethod
    def forward(_ctx: torch.autograd.function.FunctionCtx, like: Tensor) -> Tensor:
        return torch.zeros_like(like)

    @staticmethod
    def symbolic(graph: _Graph, like: torch.Value) -> torch.Value:
        return graph.op("RandomNormalLike", like)


class _Draw(torch.autograd.Function):
    """A random choice in a graph, the most likely one in torch."""

    @staticmethod
    def forward(_ctx: torch.autograd.function.FunctionCtx, log_probs: Tensor) -> Tensor:
        return log_probs.argmax(1, keepdim=True)

    @staticmethod
    def symbolic(graph: _Graph, log_probs: torch.Value) -> torch.Value:
        return graph.op("Multinomial", log_probs, dtype_i=_INT64, sample_size_i=1)


def _standard_normal(like: Tensor) -> Tensor:
    """Noise of the shape of `like`."""
    return _StandardNormal.apply(like)  # type: ignore[no-untyped-call,no-any-return]  # torch's signature


def _draw(logits: Tensor) -> Tensor:
    """Choices i64[B, 1] with the probabilities of the logits f32[B, C]."""
    return _Draw.apply(logits.log_softmax(1))  # type: ignore[no-untyped-call,no-any-return]  # torch's signature
