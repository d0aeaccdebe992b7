"""The networks of an on-policy trainer, over one vector of (already normalized) features.

Shapes: B rows, D feature columns, A continuous dimensions, H head columns (A means, then the logits of every branch),
S reward streams. Parameters live in one flat array; a layout says which part of it is which.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from engine.learning.networks.mlp import MLP, Activation, Layer
from engine.specs import ActionSpec, Float32

Array: TypeAlias = Any  # numpy array on the CPU, torch tensor elsewhere: what is written with operators serves both
TORCH_ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "swish": functional.silu,
    "tanh": torch.tanh,
    "relu": torch.relu,
}
CONTINUOUS_GAIN, DISCRETE_GAIN = 0.2, 0.1  # ML-Agents: kaiming-normal times these


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes of actor and critic: two bodies, or one that they share."""

    inputs: int
    actions: ActionSpec
    num_streams: int
    hidden_units: int
    num_layers: int
    activation: Activation
    is_shared: bool

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Every parameter by name, in the order of the flat array."""
        heads = {"actor": self.actions.continuous + self.actions.mask_size, "critic": self.num_streams}
        shapes: dict[str, tuple[int, ...]] = {}
        for part in ("body",) if self.is_shared else ("actor", "critic"):
            widths = [self.inputs] + [self.hidden_units] * self.num_layers
            if part in heads:
                widths.append(heads[part])
            shapes |= _layer_shapes(part, widths)
        if self.is_shared:
            for part, outputs in heads.items():
                shapes |= _layer_shapes(part, [self.hidden_units, outputs])
        if self.actions.continuous:
            shapes["log_sigma"] = (self.actions.continuous,)
        return shapes

    def views(self, flat: Array) -> dict[str, Array]:
        """The parts of a flat array, without a copy."""
        views, start = {}, 0
        for name, shape in self.shapes().items():
            size = math.prod(shape)
            views[name] = flat[start : start + size].reshape(shape)
            start += size
        return views

    def layers(self, part: str, flat: Array) -> list[tuple[Array, Array]]:
        """(weight, bias) of "body", "actor" or "critic", inputs first; empty for a part that is not there."""
        views = self.views(flat)
        depth = sum(name.startswith(f"{part}.") for name in views) // 2
        return [(views[f"{part}.{i}.weight"], views[f"{part}.{i}.bias"]) for i in range(depth)]

    def initial(self, random: np.random.Generator) -> Float32:
        """A flat array of fresh parameters, with ML-Agents' initial distributions."""
        flat = np.zeros(sum(math.prod(shape) for shape in self.shapes().values()), np.float32)
        for part in ("body", "actor", "critic"):
            for weight, _ in self.layers(part, flat):
                weight[:] = random.standard_normal(weight.shape, np.float32) / math.sqrt(weight.shape[1])
        head, value_head = self.layers("actor", flat)[-1][0], self.layers("critic", flat)[-1][0]
        head[: self.actions.continuous] *= CONTINUOUS_GAIN
        head[self.actions.continuous :] *= DISCRETE_GAIN
        bound = math.sqrt(6 / sum(value_head.shape))  # xavier-uniform
        value_head[:] = random.uniform(-bound, bound, value_head.shape)
        return flat


def _layer_shapes(part: str, widths: list[int]) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for index, (inputs, outputs) in enumerate(itertools.pairwise(widths)):
        shapes |= {f"{part}.{index}.weight": (outputs, inputs), f"{part}.{index}.bias": (outputs,)}
    return shapes


class ActorCritic(Protocol):
    """What a trainer needs of its networks, wherever they compute. `parameters` is flat and changed in place."""

    layout: Layout
    parameters: Array  # f32[number of parameters]
    log_sigma: Array | None  # the part of it that is the policy's spread, f32[A]

    def place(self, array: np.ndarray[Any, Any]) -> Array:
        """The array where the network computes."""

    def forward(self, features: Array) -> tuple[Array, Array]:
        """Action head f32[B, H] and values f32[B, S]; remembered for `backward`, valid until the next call."""

    def backward(self, head: Array, values: Array, log_sigma: Array | None) -> Array:
        """The flat gradient, given those of the last `forward`'s results and of log_sigma. May overwrite them."""

    def values(self, features: Array) -> Float32:
        """f32[B, S], on the CPU."""


class NumpyActorCritic:
    """On the CPU, with the backward pass written out: see mlp.py for why."""

    def __init__(self, layout: Layout, parameters: Float32):
        self.layout = layout
        self.parameters = parameters
        self._gradient = np.zeros_like(parameters)
        self.log_sigma = layout.views(parameters).get("log_sigma")
        self._log_sigma_gradient = layout.views(self._gradient).get("log_sigma")
        self._body = self._mlp("body", activate_last=True) if layout.is_shared else None
        self._actor = self._mlp("actor")
        self._critic = self._mlp("critic")

    def _mlp(self, part: str, activate_last: bool = False) -> MLP:
        layers: list[Layer] = self.layout.layers(part, self.parameters)
        return MLP(layers, self.layout.layers(part, self._gradient), self.layout.activation, activate_last)

    def place(self, array: np.ndarray[Any, Any]) -> Array:
        """The array itself."""
        return array

    def forward(self, features: Array) -> tuple[Array, Array]:
        """See ActorCritic."""
        hidden = features if self._body is None else self._body.forward(features)
        return self._actor.forward(hidden), self._critic.forward(hidden)

    def backward(self, head: Array, values: Array, log_sigma: Array | None) -> Array:
        """See ActorCritic. The same array every time."""
        is_shared = self._body is not None
        from_actor = self._actor.backward(head, is_shared)
        from_critic = self._critic.backward(values, is_shared)
        if self._body is not None and from_actor is not None and from_critic is not None:
            self._body.backward(from_actor + from_critic)
        if self._log_sigma_gradient is not None:
            self._log_sigma_gradient[:] = log_sigma
        return self._gradient

    def values(self, features: Array) -> Float32:
        """f32[B, S], a copy."""
        hidden = features if self._body is None else self._body.forward(features)
        return self._critic.forward(hidden).copy()


class TorchActorCritic:
    """On any device of torch, with its autograd."""

    def __init__(self, layout: Layout, parameters: Float32, device: torch.device):
        self.layout = layout
        self.parameters = torch.from_numpy(parameters).to(device, copy=True)
        self._views = layout.views(self.parameters)
        self.log_sigma = self._views.pop("log_sigma", None)
        for view in self._views.values():
            view.requires_grad_()
        self._device = device
        self._outputs: tuple[Tensor, ...] = ()

    def place(self, array: np.ndarray[Any, Any]) -> Array:
        """A tensor on the device."""
        return torch.from_numpy(array).to(self._device)

    def forward(self, features: Array) -> tuple[Array, Array]:
        """See ActorCritic. The results carry no gradient."""
        hidden = self._run("body", features, activate_last=True) if self.layout.is_shared else features
        self._outputs = self._run("actor", hidden), self._run("critic", hidden)
        return self._outputs[0].detach(), self._outputs[1].detach()

    def backward(self, head: Array, values: Array, log_sigma: Array | None) -> Array:
        """See ActorCritic."""
        gradients = [*torch.autograd.grad(self._outputs, list(self._views.values()), (head, values))]
        if log_sigma is not None:
            gradients.append(log_sigma)
        return torch.cat([gradient.reshape(-1) for gradient in gradients])

    def values(self, features: Array) -> Float32:
        """f32[B, S]."""
        with torch.no_grad():
            hidden = self._run("body", features, activate_last=True) if self.layout.is_shared else features
            return self._run("critic", hidden).cpu().numpy()

    def _run(self, part: str, hidden: Tensor, activate_last: bool = False) -> Tensor:
        activate = TORCH_ACTIVATIONS[self.layout.activation]
        depth = sum(name.startswith(f"{part}.") for name in self._views) // 2
        for index in range(depth):
            hidden = functional.linear(
                hidden, self._views[f"{part}.{index}.weight"], self._views[f"{part}.{index}.bias"]
            )
            if activate_last or index < depth - 1:
                hidden = activate(hidden)
        return hidden


def make_actor_critic(layout: Layout, random: np.random.Generator, device: torch.device) -> ActorCritic:
    """Fresh networks: in numpy for the CPU, in torch for everything else. Both start from the same numbers."""
    parameters = layout.initial(random)
    return (
        NumpyActorCritic(layout, parameters) if device.type == "cpu" else TorchActorCritic(layout, parameters, device)
    )
