"""The optimizer: one flat parameter, one flat gradient, on the CPU or a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rl_tui.engine.learning.networks.flat import Shapes, views
from rl_tui.engine.learning.torch_private import fused_adam_
from rl_tui.engine.specs import Float32, State

BETA1, BETA2 = 0.9, 0.999
Array: TypeAlias = Any  # numpy array or torch tensor
Snapshot: TypeAlias = tuple[Tensor, Tensor, Tensor, int]


class Parameters(Protocol):
    """Parameters to optimize: a flat array, changed in place."""

    parameters: Array  # f32[number of parameters]
    shapes: Shapes


@dataclass(frozen=True, slots=True)
class AdamState:
    """What Adam keeps, under torch's names: tensors by parameter that share memory with what trains."""

    optimizer: GradientStep = field(repr=False)
    parameters: Mapping[str, Tensor]
    exp_avg: Mapping[str, Tensor]
    exp_avg_sq: Mapping[str, Tensor]

    @property
    def step(self) -> int:
        """Steps since the beginning, or since `reset`."""
        return self.optimizer.num_steps

    def reset(self) -> None:
        """Begin again without moments, as a new optimizer would."""
        self.optimizer.num_steps = 0
        for moment in (*self.exp_avg.values(), *self.exp_avg_sq.values()):
            moment.zero_()


class GradientStep:
    """Clip and step with Adam (Kingma and Ba 2015, algorithm 1). Owns its moments, changes the parameters.

    Adam is one pass of torch over the flat arrays, in half the time of numpy's operations one by one.
    Several ranks average their gradients before this clips them.
    """

    def __init__(self, network: Parameters, epsilon: float, max_norm: float | None):
        self._shapes = network.shapes
        self._epsilon = epsilon
        self._max_norm = max_norm
        self._parameters = torch.as_tensor(network.parameters)  # the same memory
        self._mean = torch.zeros_like(self._parameters)
        self._variance = torch.zeros_like(self._parameters)
        self.num_steps = 0
        self._count = torch.zeros((), device=self._parameters.device)  # of steps, where Adam reads it

    def __call__(self, gradient: Array, learning_rate: float) -> None:
        """Take one step. max_norm bounds the global L2 norm of the gradient, which may be overwritten."""
        if self._max_norm is not None:
            norm = (gradient @ gradient) ** 0.5
            gradient *= (self._max_norm / (norm + 1e-6)).clip(max=1.0)
        self.num_steps += 1
        fused_adam_(
            [self._parameters],
            [torch.as_tensor(gradient)],
            [self._mean],
            [self._variance],
            [],
            [self._count.fill_(self.num_steps)],
            lr=learning_rate,
            beta1=BETA1,
            beta2=BETA2,
            weight_decay=0.0,
            eps=self._epsilon,
            amsgrad=False,
            maximize=False,
        )

    @property
    def num_parameters(self) -> int:
        """How many numbers are trained."""
        return len(self._parameters)

    @property
    def is_finite(self) -> bool:
        """Whether every parameter and moment is a finite number. Waits for the device."""
        return bool(self.finite)

    @property
    def finite(self) -> Tensor:
        """f32[] on the device: 1 where every parameter and moment is a finite number, else 0."""
        flats = (self._parameters, self._mean, self._variance)
        extremes = torch.stack([extreme for flat in flats for extreme in flat.aminmax()])  # NaN where there is one
        return extremes.isfinite().all().float()

    def snapshot(self) -> Snapshot:
        """A copy for `restore`; cheap, on the device."""
        return self._parameters.clone(), self._mean.clone(), self._variance.clone(), self.num_steps

    def restore(self, snapshot: Snapshot) -> None:
        """Undo every step since `snapshot`."""
        self._parameters[:], self._mean[:], self._variance[:], self.num_steps = snapshot

    def state(self) -> State:
        """Parameters and moments by parameter name, as copies."""
        moments = self.moments()
        return State(self._named("parameters", self._parameters) | moments.tensors, moments.values)

    def moments(self) -> State:
        """Of `state` what is not the parameters."""
        tensors = self._named("adam_mean", self._mean) | self._named("adam_variance", self._variance)
        return State(tensors, {"adam_steps": self.num_steps})

    def _named(self, kind: str, flat: Tensor) -> dict[str, NDArray[np.generic]]:
        named = views(flat.cpu().numpy(), self._shapes)
        return {f"{kind}.{name}": view.copy() for name, view in named.items()}

    def load(self, state: State) -> None:
        """Restore `state`, whose names and shapes must have been checked against `state()`."""
        self._parameters[:] = self._flat("parameters", state)
        self.load_moments(state)

    def load_moments(self, state: State) -> None:
        """Restore what `moments` has."""
        self._mean[:] = self._flat("adam_mean", state)
        self._variance[:] = self._flat("adam_variance", state)
        self.num_steps = int(state.number("adam_steps"))

    def opened(self) -> AdamState:
        """Its state, to read and to write."""
        return AdamState(self, *(views(flat, self._shapes) for flat in (self._parameters, self._mean, self._variance)))

    def overwrite(self, arrays: Mapping[str, Float32]) -> None:
        """Set these parameters by name; moments stay."""
        own = views(self._parameters, self._shapes)
        for name, array in arrays.items():
            own[name].copy_(torch.from_numpy(array))

    def _flat(self, kind: str, state: State) -> Tensor:
        parts = [state.tensors[f"{kind}.{name}"].reshape(-1) for name in self._shapes]
        return torch.from_numpy(np.concatenate(parts))

    def parameters(self) -> Float32:
        """A copy of the flat parameters, on the CPU."""
        copied: Float32 = self._parameters.cpu().numpy().copy()
        return copied
