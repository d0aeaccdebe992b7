"""Actor and critic with their backward pass: in numpy, or in torch on any device.

Shapes: B rows, A continuous dimensions, H head columns (A means, then the logits of every branch), R reward streams,
S sequences, M memory columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor

from rl_tui.engine.learning.acting.layers import Activation
from rl_tui.engine.learning.feature_layout import FeatureLayout, Features
from rl_tui.engine.learning.networks.flat import FlatParameters, Shapes, views
from rl_tui.engine.learning.networks.memory import Sequences
from rl_tui.engine.learning.networks.numpy.lstm import TimeOrder
from rl_tui.engine.learning.networks.numpy.named_layers import NamedLayers
from rl_tui.engine.learning.on_policy.networks import ActorCriticModule
from rl_tui.engine.specs import Float32

Array: TypeAlias = Any  # numpy array or torch tensor


@dataclass(frozen=True, slots=True)
class Outputs:
    """What networks return for B rows, or the gradients of a loss for that: head f32[B, H], values f32[B, R], and
    log_sigma f32[A] of continuous actions, None without any. Networks with further outputs derive a class from it."""

    head: Array
    values: Array
    log_sigma: Array | None


class ActorCritic(Protocol):
    """Forward and backward passes of `ActorCriticModule`. `parameters` is flat and changed in place."""

    networks: ActorCriticModule  # whose parameters are views of `parameters`
    parameters: Array  # f32[number of parameters]
    gradient: Array  # the same shape
    shapes: Shapes  # by the names of `ActorCriticModule`

    def place(self, array: np.ndarray[Any, Any]) -> Array:
        """The array on the device of the networks."""

    def forward(self, features: Features, sequences: Sequences | None = None) -> Outputs:
        """The outputs, kept for `backward`, valid until the next call.

        sequences: needed with memory; see `ActorCriticModule`.
        """

    def backward(self, gradients: Outputs) -> Array:
        """`gradient`, overwritten, given those of the last `forward`'s outputs, which it may overwrite."""

    def values(self, features: Features, sequences: Sequences | None = None) -> tuple[Float32, Float32 | None]:
        """f32[B, R] and the memories f32[S, M] after each sequence, copies on the CPU.

        sequences: with the memories f32[S, M] of the critic, or of both where it is shared; None without memory.
        """


class NumpyActorCritic:
    """Networks over vectors on the CPU, with the backward pass written out; networks/numpy/mlp.py says why."""

    def __init__(self, networks: ActorCriticModule, activation: Activation):
        """networks: without encoders; their parameters are replaced by views of `parameters`."""
        self.networks = networks
        flat = FlatParameters(networks, torch.device("cpu"))
        self.shapes = flat.shapes
        self.parameters: Float32 = flat.parameters.numpy()
        self.gradient: Float32 = flat.gradient.numpy()
        layers = NamedLayers(flat, activation)
        self._log_sigma = layers.parameters.get("actor.log_sigma")
        self._log_sigma_gradient = layers.gradients.get("actor.log_sigma")
        bodies = ["actor.body"] if networks.critic is None else ["actor.body", "critic"]
        self._bodies = [layers.body(name) for name in bodies]
        self._head, self._values = layers.single("actor.head"), layers.single("values")
        has_memory = networks.actor.memory_size > 0
        self._memory = layers.memory(bodies) if has_memory else None
        self._critic_memory = layers.memory(bodies[-1:]) if has_memory else None
        self._order: TimeOrder | None = None  # of the last `forward`

    def place(self, array: np.ndarray[Any, Any]) -> Array:
        """The array itself."""
        return array

    def forward(self, features: Features, sequences: Sequences | None = None) -> Outputs:
        """See ActorCritic."""
        if self._memory is None or sequences is None:
            hidden = [body.forward(features[0]) for body in self._bodies]
            return Outputs(self._head.forward(hidden[0]), self._values.forward(hidden[-1]), self._log_sigma)
        self._order = order = TimeOrder.of(sequences.lengths)
        rows = features[0].take(order.rows, 0)
        memories = np.asarray(sequences.memories)[order.ranks].reshape(len(order.ranks), len(self._bodies), -1)
        read = self._memory.forward([body.forward(rows) for body in self._bodies], order.counts, memories)
        head, values = self._head.forward(read[:, 0]), self._values.forward(read[:, -1])
        return Outputs(order.back(head), order.back(values), self._log_sigma)

    def backward(self, gradients: Outputs) -> Array:
        """See ActorCritic."""
        head, values = gradients.head, gradients.values
        if self._memory is not None and self._order is not None:
            head, values = head.take(self._order.rows, 0), values.take(self._order.rows, 0)
        grad_hidden = [self._head.backward(head), self._values.backward(values)]
        if len(self._bodies) == 1:
            grad_hidden = [grad_hidden[0] + grad_hidden[1]]
        if self._memory is not None:
            grad_hidden = self._memory.backward(np.stack(grad_hidden, axis=1))
        for body, gradient in zip(self._bodies, grad_hidden, strict=True):
            body.backward(gradient, with_inputs=False)
        if self._log_sigma_gradient is not None:
            self._log_sigma_gradient[:] = gradients.log_sigma
        return self.gradient

    def values(self, features: Features, sequences: Sequences | None = None) -> tuple[Float32, Float32 | None]:
        """See ActorCritic."""
        body, memory = self._bodies[-1], self._critic_memory
        if memory is None or sequences is None:
            return self._values.forward(body.forward(features[0])).copy(), None
        order = TimeOrder.of(sequences.lengths)
        rows = body.forward(features[0].take(order.rows, 0))
        hidden = memory.forward([rows], order.counts, np.asarray(sequences.memories)[order.ranks, None])
        final = np.empty_like(sequences.memories)
        final[order.ranks] = memory.final_memories()[:, 0]
        return order.back(self._values.forward(hidden[:, 0])), final


class TorchActorCritic:
    """Any networks on any device, with torch's autograd."""

    def __init__(self, networks: ActorCriticModule, device: torch.device):
        """networks: their parameters are replaced by views of `parameters`."""
        self.networks = networks.to(device)
        self._flat = FlatParameters(networks, device)
        self.shapes = self._flat.shapes
        self.parameters, self.gradient = self._flat.parameters, self._flat.gradient
        self._log_sigma = views(self.parameters, self.shapes).get("actor.log_sigma")
        self._log_sigma_gradient = views(self.gradient, self.shapes).get("actor.log_sigma")
        self._outputs: tuple[Tensor, Tensor] = torch.empty(0), torch.empty(0)

    def place(self, array: np.ndarray[Any, Any]) -> Array:
        """A tensor on the device."""
        return self._flat.place(array)

    def forward(self, features: Features, sequences: Sequences | None = None) -> Outputs:
        """See ActorCritic. The outputs are detached."""
        head, values = self._outputs = self.networks(features, sequences)
        return Outputs(head.detach(), values.detach(), self._log_sigma)

    def backward(self, gradients: Outputs) -> Array:
        """See ActorCritic."""
        self.gradient.zero_()
        torch.autograd.backward(self._outputs, (gradients.head, gradients.values))
        if self._log_sigma_gradient is not None:
            self._log_sigma_gradient.copy_(gradients.log_sigma)
        return self.gradient

    def estimates(self, features: Features) -> Tensor:
        """f32[B, R] of networks without memory, on their device, which is not waited for."""
        with torch.no_grad():
            values: Tensor = self.networks.value(features)[0]
        return values

    def values(self, features: Features, sequences: Sequences | None = None) -> tuple[Float32, Float32 | None]:
        """See ActorCritic."""
        with torch.no_grad():
            values, memories = self.networks.value(features, sequences)
        return values.cpu().numpy(), None if memories is None else memories.cpu().numpy()


def make_actor_critic(
    networks: ActorCriticModule, layout: FeatureLayout, activation: Activation, device: torch.device
) -> ActorCritic:
    """The fastest for new networks: numpy for layers over vectors on the CPU, torch otherwise."""
    is_plain = layout.has_only_vectors and not networks.actor.body.encoder.goal_outputs
    if is_plain and device.type == "cpu":
        return NumpyActorCritic(networks, activation)
    return TorchActorCritic(networks, device)
