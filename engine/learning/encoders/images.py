"""Encoders of images: convolutions, then one dense layer.

An encoder turns u8[B, H, W, C], or f32 from 0 to 1, into f32[B, U]. It is made with a generator, the spec of the
observation, the settings of the network and its own; all of its state is in parameters.

Shapes: B images of H rows, W columns and C channels; O output channels, K the side of a kernel, U hidden units.

The channels of a pixel are adjacent in memory throughout (torch's channels_last): images arrive so, convolutions are
fastest so on a CPU, and the only copy converts bytes to floating point. Bytes are divided by 255 where it costs least,
in the weights of the first convolution, which also keeps them exact in bfloat16.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from rl_tui.engine import registry
from rl_tui.engine.config.diagnostics import one_of
from rl_tui.engine.config.encoders import KIND, every_encoder
from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.learning.encoders.settings import ConvolutionalSettings, ResnetSettings
from rl_tui.engine.learning.networks.layers import linear
from rl_tui.engine.specs import ObservationSpec

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
    """U features of an image: the layers of `trunk`, then a dense one.

    Computes in float32. With `precision: bfloat16` convolutions and what follows them compute in that, in the module's
    training mode only; parameters and their gradients stay float32.
    """

    def __init__(
        self,
        random: np.random.Generator,
        spec: ObservationSpec,
        network: NetworkSettings,
        trunk: Sequence[nn.Module],
    ):
        """trunk: every layer before the dense one; the first is a convolution, if there is any."""
        super().__init__()
        self._is_half = network.precision == "bfloat16" and bool(trunk)  # without convolutions it is slower
        self.trunk = nn.ModuleList(trunk)
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

    def _activate(self, dense: Tensor) -> Tensor:
        return functional.leaky_relu_(dense, SLOPE)

    def _flat(self, images: Tensor, scale: float) -> Tensor:
        """[B, columns] of scale times the images, the channels of a pixel adjacent."""
        if not len(self.trunk):
            return images.flatten(1) * scale
        hidden = self.trunk[0](images.permute(0, 3, 1, 2), scale)
        for layer in self.trunk[1:]:
            hidden = layer(hidden)
        flat: Tensor = hidden.permute(0, 2, 3, 1).flatten(1)
        return flat


class ConvolutionalEncoder(ImageEncoder):
    """Convolutions, each with a leaky ReLU."""

    def __init__(
        self,
        random: np.random.Generator,
        spec: ObservationSpec,
        network: NetworkSettings,
        settings: ConvolutionalSettings,
    ):
        trunk: list[nn.Module] = []
        channels = spec.shape[2]
        for outputs, side, stride in settings.kernels:
            trunk += [Convolution(random, channels, outputs, side, stride), nn.LeakyReLU(SLOPE, inplace=True)]
            channels = outputs
        super().__init__(random, spec, network, trunk)


class ResidualEncoder(ImageEncoder):
    """Stages of a convolution, a maximum and two residual blocks."""

    def __init__(
        self, random: np.random.Generator, spec: ObservationSpec, network: NetworkSettings, settings: ResnetSettings
    ):
        trunk: list[nn.Module] = []
        channels = spec.shape[2]
        for outputs in settings.stages:
            trunk += [Convolution(random, channels, outputs, 3, padding=1), nn.MaxPool2d(3, 2)]
            trunk += [Residual(random, outputs), Residual(random, outputs)]
            channels = outputs
        super().__init__(random, spec, network, [*trunk, nn.SiLU()])

    def _activate(self, dense: Tensor) -> Tensor:
        return functional.relu_(dense)


def image_encoder(random: np.random.Generator, spec: ObservationSpec, network: NetworkSettings) -> nn.Module:
    """The encoder that `vis_encode_type` names, for one observation.

    Raises ConfigError for an image that is too small for it, PluginError for an installed one that fails or does not
    return f32[B, U].
    """
    name, settings = network.vis_encode_type, network.encoder_settings
    _check_size(spec, name, settings.smallest)
    made = registry.implementation(KIND, name)
    if not registry.package_of(KIND, name):
        encoder: nn.Module = made(random, spec, network, settings)
        return encoder
    with registry.blaming(KIND, name), torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(random.integers(2**63)))  # of torch's own layers, which draw from its generator
        encoder = made(random, spec, network, settings)
        _check_installed(encoder, spec, network.hidden_units)
    return encoder


def _check_size(spec: ObservationSpec, name: str, smallest: int) -> None:
    rows, columns, _ = spec.shape
    if min(rows, columns) < smallest:
        sides = {other: settings.smallest for other, settings in every_encoder().items()}
        fitting = [other for other in sorted(sides, key=lambda name: sides[name]) if sides[other] <= min(rows, columns)]
        raise ConfigError(
            f"observation {spec.name}: must be at least {smallest}x{smallest} pixels for "
            f"vis_encode_type: {name}, got {rows}x{columns}. It is large enough for {one_of(fitting)}"
        )


def _check_installed(encoder: object, spec: ObservationSpec, units: int) -> None:
    """It encodes images of either type, and a checkpoint holds all of its state."""
    if not isinstance(encoder, nn.Module):
        raise TypeError(f"must be a torch.nn.Module, got {type(encoder).__name__}")
    for name, parameter in encoder.named_parameters():
        if parameter.dtype != torch.float32:
            raise TypeError(f"parameter {name} must be float32, got {_type(parameter)}")
    for name in encoder.state_dict().keys() - dict(encoder.named_parameters(remove_duplicate=False)).keys():
        raise TypeError(f"{name} must be a parameter, or a buffer with persistent=False: checkpoints hold parameters")
    for dtype in (torch.uint8, torch.float32):
        with torch.no_grad():
            encoded = encoder(torch.zeros(2, *spec.shape, dtype=dtype))
        if not isinstance(encoded, Tensor) or encoded.shape != (2, units) or encoded.dtype != torch.float32:
            found = f"{_type(encoded)}{list(encoded.shape)}" if isinstance(encoded, Tensor) else type(encoded).__name__
            given = f"{str(dtype).removeprefix('torch.')}{[2, *spec.shape]}"
            raise TypeError(f"must return float32{[2, units]} (images, hidden_units) of {given}, got {found}")


def _type(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
