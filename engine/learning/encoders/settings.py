"""The encoders of images that are built in, which have no settings in a file: their layers are ML-Agents'."""

from typing import ClassVar, TypeAlias

from rl_tui.engine.config.encoders import EncoderSettings

Kernels: TypeAlias = tuple[tuple[int, int, int], ...]  # output channels, side and stride of each convolution


class ConvolutionalSettings(EncoderSettings):
    """Convolutions without padding, then one dense layer."""

    implementation: ClassVar = "rl_tui.engine.learning.encoders.images:ConvolutionalEncoder"
    kernels: ClassVar[Kernels] = ()


class SimpleSettings(ConvolutionalSettings):
    """Two convolutions."""

    smallest: ClassVar = 20
    kernels: ClassVar[Kernels] = ((16, 8, 4), (32, 4, 2))


class NatureSettings(ConvolutionalSettings):
    """Three convolutions (Mnih et al. 2015)."""

    smallest: ClassVar = 36
    kernels: ClassVar[Kernels] = ((32, 8, 4), (64, 4, 2), (64, 3, 1))


class ResnetSettings(EncoderSettings):
    """Three stages of residual blocks (IMPALA, Espeholt et al. 2018)."""

    implementation: ClassVar = "rl_tui.engine.learning.encoders.images:ResidualEncoder"
    smallest: ClassVar = 15
    stages: ClassVar[tuple[int, ...]] = (16, 32, 32)  # output channels


class Match3Settings(ConvolutionalSettings):
    """Two small convolutions, for the boards of games."""

    smallest: ClassVar = 5
    kernels: ClassVar[Kernels] = ((35, 3, 1), (144, 3, 1))


class FullyConnectedSettings(ConvolutionalSettings):
    """One dense layer over all pixels, without convolutions."""
