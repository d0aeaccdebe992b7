"""A layer and its derivatives by numpy or torch, whichever is faster at the size.

Calling torch costs microseconds more; its loops over large arrays take half of numpy's time. Measured on two threads of
a processor with AVX-512.
"""

from __future__ import annotations

import numpy as np
import torch

from rl_tui.engine.learning.acting import layers
from rl_tui.engine.learning.acting.layers import Activation
from rl_tui.engine.learning.torch_private import threshold_backward
from rl_tui.engine.specs import Float32

LARGE_ARRAY = 2**13  # elements
LARGE_PRODUCT = 2**22  # multiplications
LARGE_LAYER = 2**18  # the same


def is_in_place(activation: Activation) -> bool:
    """Whether the derivative follows from the output, so that the input need not be kept."""
    return activation != "swish"


def activate(activation: Activation, x: Float32, out: Float32) -> Float32:
    """The activation of x, in `out`, which may be x itself where `is_in_place`."""
    if activation == "relu" and out is x and x.size >= LARGE_ARRAY:
        torch.relu_(torch.from_numpy(x))
        return x
    return layers.activate(activation, x, out)


def multiply_by_slope(activation: Activation, grad: Float32, before: Float32, after: Float32, room: Float32) -> None:
    """Multiply the gradient after an activation by its derivative, in place. room: scratch of the same shape."""
    if activation == "relu" and grad.size >= LARGE_ARRAY:
        own, kept = torch.from_numpy(grad), torch.from_numpy(after)
        threshold_backward(own, kept, 0, grad_input=own)
        return
    if activation == "tanh":
        np.multiply(after, after, out=room)
        np.subtract(1, room, out=room)
    elif activation == "relu":
        np.greater(after, 0, out=room, casting="unsafe")
    else:  # s + x s (1 - s) with s = sigmoid(x) = (1 + tanh(x/2)) / 2, and x s = after
        np.multiply(before, 0.5, out=room)
        np.tanh(room, out=room)
        room += 1
        room *= 0.5
        grad_of_after = after * (1 - room)
        room += grad_of_after
    grad *= room


def affine(x: Float32, weight: Float32, bias: Float32, out: Float32) -> Float32:
    """x f32[B, I] by a layer's weight f32[O, I] and bias f32[O], in `out` f32[B, O]."""
    if min(len(weight), len(x)) < 16 or x.size * len(weight) < LARGE_LAYER:
        np.matmul(x, weight.T, out=out)
        out += bias
    else:
        tensors = map(torch.from_numpy, (bias, x, weight.T))
        torch.addmm(*tensors, out=torch.from_numpy(out))
    return out


def multiply(left: Float32, right: Float32, out: Float32) -> Float32:
    """The matrix product in `out`. For one column and one row numpy's takes 80 us, a broadcast product 14."""
    if left.shape[1] == 1:
        return np.multiply(left, right, out=out)
    if out.size * left.shape[1] < LARGE_PRODUCT:
        return np.matmul(left, right, out=out)
    torch.mm(torch.from_numpy(left), torch.from_numpy(right), out=torch.from_numpy(out))
    return out
