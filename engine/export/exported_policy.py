"""The torch module that is exported as a graph, with the names, shapes and constants that ML-Agents' runtimes expect.

Shapes: B rows, A continuous dimensions, K branches, C choices of one branch, S mask columns (the sum of the branch
sizes), M memory columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.export import graph_names as names
from rl_tui.engine.export.graph_names import GraphKind, input_names, output_names
from rl_tui.engine.learning.distributions import ACTION_LIMIT, MAX_LOG_SIGMA, MIN_LOG_SIGMA, mask_logits
from rl_tui.engine.learning.feature_layout import FeatureLayout, Features
from rl_tui.engine.learning.networks.actor import Actor
from rl_tui.engine.learning.networks.normalizer import LIMIT
from rl_tui.engine.specs import BehaviorSpec, ObservationSpec, Weights

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

    def __init__(
        self,
        spec: BehaviorSpec,
        network: NetworkSettings,
        is_squashed: bool,
        weights: Weights,
        kind: GraphKind = "unity",
    ):
        """weights: of an `Actor` with these settings; copied."""
        super().__init__()
        self.spec = spec
        self.network = network
        self.layout = FeatureLayout.of(spec.observations, network)
        self.actor = Actor(np.random.default_rng(0), self.layout, spec.actions, network, is_squashed)
        self.actor.load_arrays(weights.arrays)
        self.memory_size = self.actor.memory_size
        self.input_names = input_names(spec, self.memory_size)
        self.output_names = output_names(spec, self.memory_size, kind)
        self.is_normalized = "normalizer.mean" in weights.arrays
        if self.is_normalized:
            self.register_buffer("mean", torch.tensor(weights.arrays["normalizer.mean"]))
            self.register_buffer("scale", torch.tensor(weights.arrays["normalizer.scale"]))
        constants = {
            names.VERSION: [names.VERSION_NUMBER],
            names.MEMORY_SIZE: [self.memory_size],
            names.CONTINUOUS_SHAPE: [spec.actions.continuous],
            names.DISCRETE_SHAPE: [spec.actions.branches],
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
            outputs[names.CONTINUOUS] = self.bounded(mean + _standard_normal(mean) * sigma)
            outputs[names.DETERMINISTIC_CONTINUOUS] = self.bounded(mean)
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
        head, memories = self.actor.step(self._features(inputs[:count]), remembered)
        if not actions.branches:
            return Distribution(*self._gaussian(head), (), memories)
        numbers = self.actor.head.out_features - actions.mask_size
        logits = mask_logits(head[:, numbers:], inputs[count])
        branches = torch.split(logits, list(actions.branches), 1)
        return Distribution(*self._gaussian(head[:, :numbers]), branches, memories)

    def _gaussian(self, head: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and sigma."""
        size = self.spec.actions.continuous
        if self.actor.is_squashed and size:
            mean, log_sigma = torch.split(head, size, 1)
            return mean, log_sigma.clamp(MIN_LOG_SIGMA, MAX_LOG_SIGMA).exp()
        return head, head if self.actor.log_sigma is None else self.actor.log_sigma.exp()

    def bounded(self, drawn: Tensor) -> Tensor:
        """Actions in [-1, 1], as the environment receives them."""
        if self.actor.is_squashed:
            return drawn.tanh().clamp(-1, 1)  # onnxruntime's tanh reaches 1.0000002
        return drawn.clamp(-ACTION_LIMIT, ACTION_LIMIT) / ACTION_LIMIT

    def unbounded(self, actions: Tensor) -> Tensor:
        """The inverse of `bounded`, strictly between its bounds."""
        return actions.atanh() if self.actor.is_squashed else actions * ACTION_LIMIT

    def _features(self, observations: Sequence[Tensor]) -> Features:
        """As `FeatureLayout.split` returns them: images with channels last, vectors concatenated and normalized."""
        pairs = list(zip(observations, self.spec.observations, strict=True))
        is_vector = self.layout.is_vector
        others = [o.permute(0, 2, 3, 1) if spec.kind == "image" else o for o, spec in pairs if not is_vector(spec)]
        if not self.layout.columns:
            return tuple(others)
        found = [_as_vector(o, spec) for o, spec in pairs if is_vector(spec) and 0 not in spec.shape]
        vectors = found[0] if len(found) == 1 else torch.cat(found, 1)
        if self.is_normalized:
            vectors = ((vectors - self.get_buffer("mean")) * self.get_buffer("scale")).clamp(-LIMIT, LIMIT)
        return (vectors, *others)


def _as_vector(observation: Tensor, spec: ObservationSpec) -> Tensor:
    """A vector as it is; the numbers of an image f32[B, C, H, W], channels last, those of bytes from 0 to 255."""
    if spec.kind == "vector":
        return observation
    flat = observation.permute(0, 2, 3, 1).flatten(1)
    return flat * 255 if spec.dtype == "uint8" else flat


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
