"""A policy as a graph for other programs, with the names, shapes and constants that ML-Agents' runtimes look for.

Shapes: B rows, D feature columns, A continuous dimensions, K branches, M mask columns (the sum of the branch sizes).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from engine.learning.networks.distributions import ACTION_LIMIT, FORBIDDEN
from engine.learning.networks.mlp import Activation
from engine.learning.networks.normalizer import LIMIT
from engine.specs import ActionSpec, BehaviorSpec, Float32

VERSION_NUMBER = 3.0  # of ML-Agents' model format since its release 2.0
MASK_INPUT = "action_masks"
VERSION_OUTPUT = "version_number"
MEMORY_OUTPUT = "memory_size"
CONTINUOUS_OUTPUT = "continuous_actions"
CONTINUOUS_SHAPE_OUTPUT = "continuous_action_output_shape"
DETERMINISTIC_CONTINUOUS_OUTPUT = "deterministic_continuous_actions"
DISCRETE_OUTPUT = "discrete_actions"
DISCRETE_SHAPE_OUTPUT = "discrete_action_output_shape"
DETERMINISTIC_DISCRETE_OUTPUT = "deterministic_discrete_actions"
CONSTANT_OUTPUTS = (VERSION_OUTPUT, MEMORY_OUTPUT, CONTINUOUS_SHAPE_OUTPUT, DISCRETE_SHAPE_OUTPUT)
_ACTIVATE: dict[Activation, Callable[[Tensor], Tensor]] = {
    "swish": functional.silu,
    "tanh": torch.tanh,
    "relu": torch.relu,
}
_INT64 = 7  # TensorProto.INT64


def input_names(spec: BehaviorSpec) -> list[str]:
    """obs_0, obs_1, ... in the order of the observations, then the mask if there are discrete actions."""
    masks = [MASK_INPUT] if spec.actions.branches else []
    return [f"obs_{index}" for index in range(len(spec.observations))] + masks


def output_names(actions: ActionSpec) -> list[str]:
    """In the order in which `ExportedPolicy` returns them."""
    names = [VERSION_OUTPUT, MEMORY_OUTPUT]
    if actions.continuous:
        names += [CONTINUOUS_OUTPUT, CONTINUOUS_SHAPE_OUTPUT, DETERMINISTIC_CONTINUOUS_OUTPUT]
    if actions.branches:
        names += [DISCRETE_OUTPUT, DISCRETE_SHAPE_OUTPUT, DETERMINISTIC_DISCRETE_OUTPUT]
    return names


class ExportedPolicy(nn.Module):
    """Every output of a policy, as a function of its observations and of what its mask allows.

    Randomness belongs to whatever runs the graph. In torch itself the sampled actions are the most likely ones, so
    that tracing draws nothing from the generator that the rest of the process shares.
    """

    def __init__(self, spec: BehaviorSpec, activation: Activation, arrays: Mapping[str, Float32]):
        """arrays: those of `Weights`, named as `VectorPolicy.load` tells; they are copied."""
        super().__init__()
        depth = sum(name.startswith("layers.") for name in arrays) // 2
        self.spec = spec
        self.activation: Activation = activation
        self.layers = nn.ModuleList(
            _linear(arrays[f"layers.{index}.weight"], arrays[f"layers.{index}.bias"]) for index in range(depth)
        )
        self.is_normalized = "normalizer.mean" in arrays
        if self.is_normalized:
            self.register_buffer("mean", torch.tensor(arrays["normalizer.mean"]))
            self.register_buffer("scale", torch.tensor(arrays["normalizer.scale"]))
        self.register_buffer(VERSION_OUTPUT, torch.tensor([VERSION_NUMBER]))
        self.register_buffer(MEMORY_OUTPUT, torch.zeros(1))
        if spec.actions.continuous:
            self.register_buffer("log_sigma", torch.tensor(arrays["log_sigma"]))
            self.register_buffer("continuous_shape", torch.tensor([float(spec.actions.continuous)]))
        if spec.actions.branches:
            self.register_buffer("discrete_shape", torch.tensor([spec.actions.branches], dtype=torch.float32))
        self.eval()

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """The outputs named by `output_names` of the inputs named by `input_names`.

        Inputs: f32[B, ...] per observation and f32[B, M] of 0 and 1, 1 = allowed. Outputs: actions f32[B, A] in
        [-1, 1] and i64[B, K]; constants f32[1], the branch sizes f32[1, K].
        """
        outputs = [self.get_buffer(VERSION_OUTPUT), self.get_buffer(MEMORY_OUTPUT)]
        mean, branches = self.distributions(*inputs)
        if mean is not None:
            sampled = mean + _standard_normal(mean) * self.get_buffer("log_sigma").exp()
            outputs += [_bounded(sampled), self.get_buffer("continuous_shape"), _bounded(mean)]
        if branches:
            drawn = [_draw(logits) for logits in branches]
            likeliest = [logits.argmax(1, keepdim=True) for logits in branches]
            outputs += [torch.cat(drawn, 1), self.get_buffer("discrete_shape"), torch.cat(likeliest, 1)]
        return tuple(outputs)

    def distributions(self, *inputs: Tensor) -> tuple[Tensor | None, tuple[Tensor, ...]]:
        """Means f32[B, A], None without continuous actions, and the masked logits of each branch."""
        actions = self.spec.actions
        head = self.values(*inputs)[-1]
        if not actions.branches:
            return head, ()
        mean = head[:, : actions.continuous] if actions.continuous else None
        return mean, torch.split(_masked(head[:, actions.continuous :], inputs[-1]), list(actions.branches), 1)

    def values(self, *inputs: Tensor) -> list[Tensor]:
        """The features f32[B, D], then what each layer computes before its activation, the head last."""
        observations = inputs[: len(self.spec.observations)]
        flat = [o if o.dim() == 2 else o.flatten(1) for o in observations]
        features = flat[0] if len(flat) == 1 else torch.cat(flat, 1)
        if self.is_normalized:
            features = ((features - self.get_buffer("mean")) * self.get_buffer("scale")).clamp(-LIMIT, LIMIT)
        values = [features]
        for index, layer in enumerate(self.layers):
            values.append(layer(_ACTIVATE[self.activation](values[-1]) if index else features))
        return values


class _Graph(Protocol):
    """What torch's TorchScript exporter hands to a symbolic function."""

    def op(self, name: str, *inputs: torch._C.Value, **attributes: int) -> torch._C.Value:
        """Append an ONNX node and return its output."""


class _StandardNormal(torch.autograd.Function):
    """Noise in a graph, zeros in torch."""

    @staticmethod
    def forward(_ctx: torch.autograd.function.FunctionCtx, like: Tensor) -> Tensor:
        return torch.zeros_like(like)

    @staticmethod
    def symbolic(graph: _Graph, like: torch._C.Value) -> torch._C.Value:
        return graph.op("RandomNormalLike", like)


class _Draw(torch.autograd.Function):
    """A draw in a graph, the most likely choice in torch."""

    @staticmethod
    def forward(_ctx: torch.autograd.function.FunctionCtx, log_probs: Tensor) -> Tensor:
        return log_probs.argmax(1, keepdim=True)

    @staticmethod
    def symbolic(graph: _Graph, log_probs: torch._C.Value) -> torch._C.Value:
        return graph.op("Multinomial", log_probs, dtype_i=_INT64, sample_size_i=1)


def _standard_normal(like: Tensor) -> Tensor:
    """Noise of that shape. torch.export traces without computing, so its own random operations are safe there."""
    if torch.compiler.is_compiling():
        return torch.randn_like(like)
    return _StandardNormal.apply(like)  # type: ignore[no-untyped-call,no-any-return]  # torch's signature


def _draw(logits: Tensor) -> Tensor:
    """i64[B, 1], with the probabilities of the logits f32[B, C]."""
    if torch.compiler.is_compiling():
        return torch.multinomial(logits.softmax(1), 1)
    return _Draw.apply(logits.log_softmax(1))  # type: ignore[no-untyped-call,no-any-return]  # torch's signature


def _masked(logits: Tensor, allowed: Tensor) -> Tensor:
    """Logits that give a forbidden choice no probability; finite also when nothing is allowed."""
    return logits * allowed - FORBIDDEN * (1 - allowed)


def _bounded(actions: Tensor) -> Tensor:
    """As the environment gets them."""
    return actions.clamp(-ACTION_LIMIT, ACTION_LIMIT) / ACTION_LIMIT


def _linear(weight: Float32, bias: Float32) -> nn.Linear:
    """A layer of those numbers; "meta", because nn.Linear draws its first weights from the generator of the process."""
    layer = nn.Linear(weight.shape[1], weight.shape[0], device="meta")
    layer.weight = nn.Parameter(torch.tensor(weight), requires_grad=False)
    layer.bias = nn.Parameter(torch.tensor(bias), requires_grad=False)
    return layer
