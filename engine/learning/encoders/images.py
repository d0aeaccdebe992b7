"""Encoders of images: convolutions, then one dense layer.

Shapes: B images of H rows, W columns and C channels; O output channels, K the side of a kernel, U hidden units.

The channels of a pixel are adjacent in memory throughout (torch's channels_last): images arrive so, convolutions are
fastest so on a CPU, and the only copy converts bytes to floating point. Bytes are divided by 255 where it costs least,
in the weights of the first convolution, which also keeps them exact in bfloat16.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.learning.networks.layers import linear
from rl_tui.engine.specs import ObservationSpec

MINIMUM = {"fully_connected": 1, "match3": 5, "resnet": 15, "simple": 20, "nature_cnn": 36}  # H and W by encoder
KERNELS = {  # output channels, side and stride of each convolution
    "fully_connected": (),
    "match3": ((35, 3, 1), (144, 3, 1)),
    "simple": ((16, 8, 4), (32, 4, 2)),
    "nature_cnn": ((32, 8, 4), (64, 4, 2), (64, 3, 1)),  # Mnih et al. 2015
}
STAGES = (16, 32, 32)  # output channels of resnet's: Espeholt et al. 2018, IMPALA
SLOPE = 0.01  # of LeakyReLU below zero
DENSE_GAIN = 1.41  # ML-Agents: kaiming-normal times this


class Convolution(nn.Module):
    """A convolution with torch's initial values: uniform within 1 / sqrt(C K K), the bias as well.

    weight: f32[O, C, K, K].
    """

    def __init__(
        self, random: np.random.Generator, inputs: int, outputs: int, side: int, stride: int = 1, padding: int = 0
    ):
        super().__init__()
        self.stride, self.padding = stride, padding
        bound = 1 / math.sqrt(inputs * side * side)
        weight = random.uniform(-bound, bound, (outputs, inputs, side, side)).astype(np.float32)
        bias = random.uniform(-bound, bound, outputs).astype(np.float32)
        self.weight = nn.Parameter(torch.from_numpy(weight))
        self.bias = nn.Parameter(torch.from_numpy(bias))

    def forward(self, images: Tensor, scale: float = 1.0) -> Tensor:
        """[B, O, H', W'] of scale times images [B, C, H, W], in the type of the images."""
        kind = images.dtype
        weight = self.weight if scale == 1 else self.weight * scale
        return functional.conv2d(images, weight.to(kind), self.bias.to(kind), self.stride, self.padding)


class Residual(nn.Module):
    """Its input plus two convolutions of it, with swish before each."""

    def __init__(self, random: np.random.Generator, channels: int):
        super().__init__()
        self.first = Convolution(random, channels, channels, 3, padding=1)
        self.second = Convolution(random, channels, channels, 3, padding=1)

    def forward(self, images: Tensor) -> Tensor:
        """[B, C, H, W] of the same."""
        hidden = self.first(functional.silu(images))
        result: Tensor = images + self.second(functional.silu(hidden))
        return result


class ImageEncoder(nn.Module):
    """U features of an image, with the layers that `vis_encode_type` names (ML-Agents' own).

    Computes in float32. With `precision: bfloat16` convolutions and what follows them compute in that, in the module's
    training mode only; parameters and their gradients stay float32. Raises ConfigError for an image too small.
    """

    def __init__(self, random: np.random.Generator, spec: ObservationSpec, network: NetworkSettings):
        super().__init__()
        kind = network.vis_encode_type
        _check_size(spec, kind)
        self._is_half = network.precision == "bfloat16" and kind != "fully_connected"  # slower for it
        self._activate = functional.relu_ if kind == "resnet" else _leaky_relu_
        self.trunk = nn.ModuleList(_trunk(random, kind, spec.shape[2]))
        with torch.no_grad():
            columns = self._flat(torch.zeros(1, *spec.shape), 1.0).shape[1]
        self.dense = linear(random, columns, network.hidden_units, gain=DENSE_GAIN)

    def forward(self, images: Tensor) -> Tensor:
        """f32[B, U] of u8[B, H, W, C], or of floats used as they are."""
        kept = self.dense.weight.dtype
        kind = torch.bfloat16 if self._is_half and self.training else kept
        flat = self._flat(images.to(kind), 1 / 255 if images.dtype == torch.uint8 else 1.0)
        dense = functional.linear(flat, self.dense.weight.to(kind), self.dense.bias.to(kind))
        return self._activate(dense).to(kept)

    def _flat(self, images: Tensor, scale: float) -> Tensor:
        """[B, columns] of scale times the images, the channels of a pixel adjacent."""
        if not len(self.trunk):
            return images.flatten(1) * scale
        hidden = self.trunk[0](images.permute(0, 3, 1, 2), scale)
        for layer in self.trunk[1:]:
            hidden = layer(hidden)
        flat: Tensor = hidden.permute(0, 2, 3, 1).flatten(1)
        return flat


def _check_size(spec: ObservationSpec, kind: str) -> None:
    rows, columns, _ = spec.shape
    if min(rows, columns) < MINIMUM[kind]:
        fitting = [name for name, side in MINIMUM.items() if side <= min(rows, columns)]
        raise ConfigError(
            f"observation {spec.name}: must be at least {MINIMUM[kind]}x{MINIMUM[kind]} pixels for "
            f"vis_encode_type: {kind}, got {rows}x{columns}. It is large enough for {' or '.join(fitting)}"
        )


def _trunk(random: np.random.Generator, kind: str, channels: int) -> list[nn.Module]:
    """Every layer before the dense one; the first is a convolution, if there is any."""
    layers: list[nn.Module] = []
    if kind == "resnet":
        for outputs in STAGES:
            layers += [Convolution(random, channels, outputs, 3, padding=1), nn.MaxPool2d(3, 2)]
            layers += [Residual(random, outputs), Residual(random, outputs)]
            channels = outputs
        return [*layers, nn.SiLU()]
    for outputs, side, stride in KERNELS[kind]:
        layers += [Convolution(random, channels, outputs, side, stride), nn.LeakyReLU(SLOPE, inplace=True)]
        channels = outputs
    return layers


def _leaky_relu_(rows: Tensor) -> Tensor:
    return functional.leaky_relu_(rows, SLOPE)
