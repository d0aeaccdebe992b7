"""The only place that steps an optimizer: one flat parameter, one flat gradient, on the CPU or a device."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np
import torch

from engine.learning.networks.flat import Shapes, views
from engine.specs import Float32, State

BETA1, BETA2 = 0.9, 0.999
Array: TypeAlias = Any  # numpy array or torch tensor
Snapshot: TypeAlias = tuple[Array, Array, Array, int]


class Parameters(Protocol):
    """What is stepped: `parameters` is flat and changed in place."""

    parameters: Array  # f32[number of parameters]
    shapes: Shapes

    def place(self, array: np.ndarray[Any, Any]) -> Array:
        """The array where `parameters` are."""


class GradientStep:
    """Clip and step with Adam (Kingma and Ba 2015, algorithm 1). Owns its moments, changes the parameters.

    Our own lines: they serve both kinds of arrays, and torch.optim costs 1.3 s of imports at its first use. Averaging
    the gradient over ranks belongs before the clipping.
    """

    def __init__(self, network: Parameters, epsilon: float, max_norm: float | None):
        self._network = network
        self._epsilon = epsilon
        self._max_norm = max_norm
        self._mean = network.parameters * 0
        self._variance = network.parameters * 0
        self._room = network.parameters * 0
        self._steps = 0

    def __call__(self, gradient: Array, learning_rate: float) -> None:
        """Descend once. max_norm bounds the global L2 norm of the gradient, which may be overwritten."""
        if self._max_norm is not None:
            norm = (gradient @ gradient) ** 0.5
            gradient *= (self._max_norm / (norm + 1e-6)).clip(max=1.0)
        self._steps += 1
        descend = _descend_numpy if isinstance(gradient, np.ndarray) else _descend_torch
        arrays = self._network.parameters, gradient, self._mean, self._variance, self._room
        descend(*arrays, self._steps, learning_rate, self._epsilon)

    @property
    def num_parameters(self) -> int:
        """How many numbers are trained."""
        return len(self._network.parameters)

    @property
    def is_finite(self) -> bool:
        """Whether every parameter and moment is a finite number. Waits for the device."""
        flats = self._network.parameters, self._mean, self._variance
        return all(bool(np.isfinite(_on_cpu(flat)).all()) for flat in flats)

    def snapshot(self) -> Snapshot:
        """What `restore` goes back to; cheap, on the device."""
        return self._network.parameters + 0, self._mean + 0, self._variance + 0, self._steps

    def restore(self, snapshot: Snapshot) -> None:
        """Undo every step since `snapshot`."""
        self._network.parameters[:], self._mean[:], self._variance[:], self._steps = snapshot

    def state(self) -> State:
        """Parameters and moments by parameter name, as copies."""
        flats = {"parameters": self._network.parameters, "adam_mean": self._mean, "adam_variance": self._variance}
        tensors = {
            f"{kind}.{name}": view.copy()
            for kind, flat in flats.items()
            for name, view in views(_on_cpu(flat), self._network.shapes).items()
        }
        return State(tensors, {"adam_steps": self._steps})

    def load(self, state: State) -> None:
        """Go on from `state`, whose names and shapes must have been checked against `state()`."""
        self._network.parameters[:] = self._flat("parameters", state)
        self._mean[:] = self._flat("adam_mean", state)
        self._variance[:] = self._flat("adam_variance", state)
        self._steps = int(state.values["adam_steps"])  # type: ignore[arg-type]  # written by state() as an int

    def _flat(self, kind: str, state: State) -> Array:
        parts = [state.tensors[f"{kind}.{name}"].reshape(-1) for name in self._network.shapes]
        return self._network.place(np.concatenate(parts).astype(np.float32))

    def parameters(self) -> Float32:
        """A copy of the flat parameters, on the CPU."""
        return _on_cpu(self._network.parameters).copy()


def _descend_numpy(
    parameters: Array,
    gradient: Array,
    mean: Array,
    variance: Array,
    room: Array,
    steps: int,
    learning_rate: float,
    epsilon: float,
) -> None:
    """Move both moments, then the parameters. steps: with this one. room: scratch."""
    correction = (1 - BETA2**steps) ** 0.5
    np.subtract(gradient, mean, out=room)
    room *= 1 - BETA1
    mean += room
    np.multiply(gradient, gradient, out=room)
    room -= variance
    room *= 1 - BETA2
    variance += room
    np.sqrt(variance, out=room)
    room += epsilon * correction
    np.divide(mean, room, out=room)
    room *= learning_rate / (1 - BETA1**steps) * correction
    parameters -= room


def _descend_torch(
    parameters: Array,
    gradient: Array,
    mean: Array,
    variance: Array,
    _room: Array,
    steps: int,
    learning_rate: float,
    epsilon: float,
) -> None:
    """The same in one pass: what torch.optim.Adam(fused=True) calls, in half the time of separate operations."""
    torch._fused_adam_(
        [parameters],
        [gradient],
        [mean],
        [variance],
        [],
        [torch.tensor(float(steps), device=parameters.device)],
        lr=learning_rate,
        beta1=BETA1,
        beta2=BETA2,
        weight_decay=0.0,
        eps=epsilon,
        amsgrad=False,
        maximize=False,
    )


def _on_cpu(array: Array) -> Float32:
    return array if isinstance(array, np.ndarray) else array.detach().cpu().numpy()
