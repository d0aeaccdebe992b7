"""Linear layers: their initial weights, and a stack of them that is one node of autograd.

Shapes: B rows, I inputs, O outputs; T networks of the same shape side by side (twins), or none of that axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from rl_tui.engine.learning.acting.layers import Activation
from rl_tui.engine.learning.torch_private import silu_backward, tanh_backward, threshold_backward

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "swish": nn.functional.silu,
    "tanh": torch.tanh,
    "relu": torch.relu,
}
_IN_PLACE = ACTIVATIONS | {"tanh": torch.tanh_, "relu": torch.relu_}
Initial: TypeAlias = Literal["kaiming", "xavier"]


def weight(
    random: np.random.Generator, outputs: int, inputs: int, initial: Initial = "kaiming", gain: float = 1.0
) -> Tensor:
    """f32[O, I]: normal with deviation gain / sqrt(I), or uniform within gain * sqrt(6 / (I + O))."""
    if initial == "kaiming":
        values = random.standard_normal((outputs, inputs), np.float32) / np.float32(math.sqrt(inputs))
    else:
        bound = math.sqrt(6 / (inputs + outputs))
        values = random.uniform(-bound, bound, (outputs, inputs)).astype(np.float32)
    return torch.from_numpy(values * np.float32(gain))


def linear(
    random: np.random.Generator, inputs: int, outputs: int, initial: Initial = "kaiming", gain: float = 1.0
) -> nn.Linear:
    """A layer with such weights and a bias of zero, drawn from `random` alone."""
    layer = nn.Linear(inputs, outputs, device="meta")  # otherwise it would draw from the global generator
    layer.weight = nn.Parameter(weight(random, outputs, inputs, initial, gain))
    layer.bias = nn.Parameter(torch.zeros(outputs))
    return layer


class Layers(nn.Module):
    """Linear layers with an activation after each, or, with `ends_linear`, after each but the last.

    twins: T networks at once, with weights f32[T, O, I] and biases f32[T, O]; None for one without that axis.
    """

    def __init__(
        self,
        random: np.random.Generator,
        widths: list[int],
        activation: Activation,
        ends_linear: bool = False,
        twins: int | None = None,
        gain: float = 1.0,
    ):
        """widths: inputs of the first layer, then the outputs of each. gain: of the initial weights."""
        super().__init__()
        self.activation: Activation = activation
        self.ends_linear = ends_linear
        self.weights = nn.ParameterList()
        self.biases = nn.ParameterList()
        for inputs, outputs in pairwise(widths):
            each = [weight(random, outputs, inputs, gain=gain) for _ in range(twins or 1)]
            self.weights.append(nn.Parameter(each[0] if twins is None else torch.stack(each)))
            self.biases.append(nn.Parameter(torch.zeros(outputs if twins is None else (twins, outputs))))
        pairs = zip(self.weights, self.biases, strict=True)
        self._in_order = [parameter for pair in pairs for parameter in pair]  # ParameterList is slow to index
        self.is_one_node = True

    def forward(self, inputs: Tensor) -> Tensor:
        """f32[B, O] of f32[B, I], or f32[T, B, O] of f32[B, I] or f32[T, B, I]."""
        if not (self.is_one_node and torch.is_grad_enabled()):
            return self._plain(inputs)
        result: Tensor = _Stack.apply(inputs, self.activation, self.ends_linear, *self._in_order)  # type: ignore[no-untyped-call]  # torch's signature
        return result

    def _plain(self, hidden: Tensor) -> Tensor:
        """The same in separate operations, which can be traced."""
        depth = len(self._in_order) // 2
        for index in range(depth):
            hidden = _affine(hidden, self._in_order[2 * index], self._in_order[2 * index + 1])
            if index < depth - 1 or not self.ends_linear:
                hidden = ACTIVATIONS[self.activation](hidden)
        return hidden


class _Stack(torch.autograd.Function):
    """All layers in one node: in small networks autograd of each layer takes as long as its arithmetic."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, activation: Activation, ends_linear: bool, *parameters: Tensor) -> Tensor:
        depth = len(parameters) // 2
        ctx.activation, ctx.num_active = activation, depth - 1 if ends_linear else depth
        hidden, before, after = inputs, [], [inputs]
        for index in range(depth):
            hidden = _affine(hidden, parameters[2 * index], parameters[2 * index + 1])
            if index < ctx.num_active:
                if activation == "swish":  # its derivative needs its input
                    before.append(hidden)
                hidden = _IN_PLACE[activation](hidden)
            after.append(hidden)
        ctx.save_for_backward(*parameters, *before, *after)
        ctx.depth = depth
        return hidden

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        depth, saved, is_ours = ctx.depth, ctx.saved_tensors, False
        parameters, before, after = saved[: 2 * depth], saved[2 * depth : -depth - 1], saved[-depth - 1 :]
        gradients: list[Tensor | None] = [None] * (2 * depth)
        gradient = gradient.contiguous()
        for index in reversed(range(depth)):
            if index < ctx.num_active:
                room = gradient if is_ours else torch.empty_like(gradient)
                gradient = _activation_backward(
                    ctx.activation, gradient, before[index] if before else after[index + 1], room
                )
            if ctx.needs_input_grad[3 + 2 * index]:
                gradients[2 * index] = gradient.mT @ after[index]
                gradients[2 * index + 1] = gradient.sum(-2)
            if index > 0 or ctx.needs_input_grad[0]:
                gradient, is_ours = gradient @ parameters[2 * index], True
        inputs = gradient if ctx.needs_input_grad[0] else None  # autograd sums over twins with the same rows
        return inputs, None, None, *gradients


def make_twice_differentiable(module: nn.Module) -> None:
    """From now on, gradients of the module can be differentiated, too: its layers are separate nodes of autograd."""
    for part in module.modules():
        if isinstance(part, Layers):
            part.is_one_node = False


def _affine(hidden: Tensor, weights: Tensor, bias: Tensor) -> Tensor:
    if weights.dim() == 2:
        return torch.addmm(bias, hidden, weights.t())
    if hidden.dim() == 2:
        hidden = hidden.expand(len(weights), *hidden.shape)
    return torch.baddbmm(bias[:, None], hidden, weights.mT)


def _activation_backward(activation: Activation, gradient: Tensor, known: Tensor, room: Tensor) -> Tensor:
    """The gradient before an activation, in `room`, from that after it and its input (swish) or output."""
    if activation == "swish":
        silu_backward(gradient, known, grad_input=room)
    elif activation == "tanh":
        tanh_backward(gradient, known, grad_input=room)
    else:
        threshold_backward(gradient, known, 0, grad_input=room)
    return room
