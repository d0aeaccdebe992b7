"""Layers to act: nothing is kept for gradients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import numpy as np

from rl_tui.engine.specs import Float32

Activation: TypeAlias = Literal["swish", "tanh", "relu"]
Layer: TypeAlias = tuple[Float32, Float32]  # weight f32[outputs, inputs], bias f32[outputs]


def activate(activation: Activation, x: Float32, out: Float32) -> Float32:
    """The activation of x, in `out`, which may be x itself for those other than swish."""
    if activation == "tanh":
        return np.tanh(x, out=out)
    if activation == "relu":
        return np.maximum(x, 0, out=out)
    np.multiply(x, 0.5, out=out)  # x * sigmoid(x) = x/2 * (1 + tanh(x/2)): no exp that could overflow
    np.tanh(out, out=out)
    out += 1
    out *= x
    out *= 0.5
    return out


def apply_layers(layers: Sequence[Layer], activation: Activation, rows: Float32) -> Float32:
    """`MLP.forward` of these rows; weights are f32[inputs, outputs], contiguous."""
    for weight, bias in layers:
        rows = rows.dot(weight)  # @ takes twice as long for a few rows
        rows += bias
        rows = activate(activation, rows, np.empty_like(rows))
    return rows


def layer_names(names: Iterable[str], prefix: str) -> list[tuple[str, str]]:
    """Names of weight and bias of every layer in the `Layers` with this prefix, in order."""
    depth = sum(name.startswith(f"{prefix}weights.") for name in names)
    return [(f"{prefix}weights.{index}", f"{prefix}biases.{index}") for index in range(depth)]
