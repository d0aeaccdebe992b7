"""Image encoders against torch's usual layers, hand-counted parameters and numbers of a fixed seed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.errors import ConfigError
from rl_tui.engine.learning.encoders.images import Convolution, ImageEncoder, image_encoder
from rl_tui.engine.learning.networks.flat import FlatParameters
from rl_tui.engine.specs import ObservationSpec

UNITS = 16
SHAPES = {
    "fully_connected": (4, 5, 3),
    "match3": (8, 9, 5),
    "resnet": (17, 20, 3),
    "simple": (40, 44, 3),
    "nature_cnn": (40, 44, 3),
}
PARAMETERS = {  # convolutions one by one, then the dense layer; weights, then biases
    "fully_connected": 4 * 5 * 3 * 16 + 16,
    "match3": (35 * 5 * 9 + 35) + (144 * 35 * 9 + 144) + (4 * 5 * 144 * 16 + 16),
    "resnet": (16 * 3 * 9 + 16)
    + 4 * (16 * 16 * 9 + 16)
    + (32 * 16 * 9 + 32)
    + 9 * (32 * 32 * 9 + 32)
    + (1 * 1 * 32 * 16 + 16),
    "simple": (16 * 3 * 64 + 16) + (32 * 16 * 16 + 32) + (3 * 4 * 32 * 16 + 16),
    "nature_cnn": (32 * 3 * 64 + 32) + (64 * 32 * 16 + 64) + (64 * 64 * 9 + 64) + (1 * 2 * 64 * 16 + 16),
}
GOLDEN = {  # mean square of what is encoded, length of its gradient
    "fully_connected": (0.4540707, 1.260283),
    "match3": (0.02752109, 0.671094),
    "resnet": (0.005675622, 0.1891436),
    "simple": (0.01000081, 0.2619434),
    "nature_cnn": (0.001935869, 0.07786546),
}


def encoder(kind: str, shape: tuple[int, ...] | None = None, **settings: Any) -> ImageEncoder:
    spec = ObservationSpec("camera", shape or SHAPES[kind], "uint8")
    network = NetworkSettings(vis_encode_type=kind, hidden_units=UNITS, **settings)
    made = image_encoder(np.random.default_rng(0), spec, network)
    assert isinstance(made, ImageEncoder)
    return made


def images(kind: str, rows: int = 3) -> Tensor:
    return torch.from_numpy(np.random.default_rng(1).integers(0, 256, (rows, *SHAPES[kind]), np.uint8))


def gradients(module: ImageEncoder, observed: Tensor) -> tuple[Tensor, list[Tensor]]:
    """What is encoded, and the gradients of its mean square."""
    encoded = module(observed)
    return encoded.detach(), list(torch.autograd.grad(encoded.square().mean(), list(module.parameters())))


@pytest.mark.parametrize("kind", SHAPES)
def test_each_encoder_gives_hidden_units_with_the_parameters_counted_by_hand(kind: str) -> None:
    module = encoder(kind)
    assert module(images(kind)).shape == (3, UNITS)
    assert sum(parameter.numel() for parameter in module.parameters()) == PARAMETERS[kind]


def usual(module: ImageEncoder, kind: str, observed: Tensor) -> Tensor:
    """The same layers over channels first, with the weights of a module in float64 and pixels divided by 255."""
    hidden = observed.double().permute(0, 3, 1, 2).contiguous() / 255
    convolutions = iter([m for m in module.modules() if isinstance(m, Convolution)])
    if kind == "resnet":
        for _ in range(3):
            hidden = functional.max_pool2d(convolve(next(convolutions), hidden, 1, 1), 3, 2)
            for _ in range(2):
                inner = convolve(next(convolutions), hidden * hidden.sigmoid(), 1, 1)
                hidden = hidden + convolve(next(convolutions), inner * inner.sigmoid(), 1, 1)
        hidden = hidden * hidden.sigmoid()
    else:
        strides = {"simple": (4, 2), "nature_cnn": (4, 2, 1), "match3": (1, 1), "fully_connected": ()}[kind]
        for stride in strides:
            hidden = convolve(next(convolutions), hidden, stride, 0)
            hidden = hidden.clamp(min=0) + 0.01 * hidden.clamp(max=0)
    flat = hidden.permute(0, 2, 3, 1).reshape(len(hidden), -1)
    dense = flat @ module.dense.weight.double().t() + module.dense.bias.double()
    return dense.clamp(min=0) + (0 if kind == "resnet" else 0.01) * dense.clamp(max=0)


def convolve(layer: Convolution, hidden: Tensor, stride: int, padding: int) -> Tensor:
    return functional.conv2d(hidden, layer.weight.double(), layer.bias.double(), stride, padding)


@pytest.mark.parametrize("kind", SHAPES)
def test_what_is_encoded_and_its_gradients_are_those_of_the_usual_layers(kind: str) -> None:
    module = encoder(kind)
    encoded, ours = gradients(module, images(kind))
    expected = usual(module, kind, images(kind))
    torch.testing.assert_close(encoded.double(), expected, rtol=1e-4, atol=1e-5)
    theirs = torch.autograd.grad(expected.square().mean(), list(module.parameters()))
    for gradient, reference in zip(ours, theirs, strict=True):
        torch.testing.assert_close(gradient, reference, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("kind", SHAPES)
def test_golden_loss_and_gradient(kind: str) -> None:
    encoded, found = gradients(encoder(kind), images(kind))
    length = torch.cat([gradient.flatten() for gradient in found]).norm()
    assert (float(encoded.square().mean()), float(length)) == pytest.approx(GOLDEN[kind], rel=1e-4)


@pytest.mark.parametrize("kind", SHAPES)
def test_bytes_and_their_255th_parts_are_the_same_image(kind: str) -> None:
    module, observed = encoder(kind), images(kind)
    torch.testing.assert_close(module(observed), module(observed.float() / 255), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", SHAPES)
def test_bfloat16_is_close_to_float32_while_training_and_the_same_otherwise(kind: str) -> None:
    exact, rounded = encoder(kind), encoder(kind, precision="bfloat16")
    reference, reference_gradients = gradients(exact, images(kind))
    found, found_gradients = gradients(rounded, images(kind))
    assert found.dtype == torch.float32
    assert 0 < (found - reference).norm() < 0.02 * reference.norm() or kind == "fully_connected"
    for gradient, expected in zip(found_gradients, reference_gradients, strict=True):
        assert gradient.dtype == torch.float32
        assert (gradient - expected).norm() <= 0.15 * expected.norm()  # a maximum may stand at another pixel
    assert torch.equal(rounded.eval()(images(kind)), reference)


def nodes(node: Any) -> Iterator[Any]:
    """A node of autograd's graph and all that it hands gradients to."""
    yield node
    for after, _ in node.next_functions:
        if after is not None:
            yield from nodes(after)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", ["match3", "resnet", "simple", "nature_cnn"])
@pytest.mark.parametrize("scale", [1, 1.0])
def test_no_gradient_of_the_pixels_is_computed(kind: str, precision: str, scale: float) -> None:
    encoded = encoder(kind, precision=precision)(images(kind) * scale)
    convolutions = {node for node in nodes(encoded.grad_fn) if node.name() == "ConvolutionBackward0"}
    assert len([node for node in convolutions if node.next_functions[0][0] is None]) == 1


@pytest.mark.parametrize("kind", ["match3", "resnet", "simple", "nature_cnn"])
@pytest.mark.parametrize("channels", [1, 3])
def test_channels_stay_adjacent_from_pixels_to_the_dense_layer_also_in_one_flat_tensor(
    kind: str, channels: int
) -> None:
    shape = (*SHAPES[kind][:2], channels)
    module = encoder(kind, shape)
    before = module(torch.ones(2, *shape, dtype=torch.uint8))
    FlatParameters(module, torch.device("cpu"))
    passed: list[Tensor] = []
    for layer in module.trunk:
        layer.register_forward_hook(lambda _module, inputs, output: passed.extend([inputs[0], output]))
    torch.testing.assert_close(module(torch.ones(2, *shape, dtype=torch.uint8)), before)
    assert len(passed) == 2 * len(module.trunk)
    assert all(tensor.permute(0, 2, 3, 1).is_contiguous() for tensor in passed)


def test_initial_weights_are_those_of_torch_and_of_ml_agents() -> None:
    module = encoder("nature_cnn")
    second = module.trunk[2]
    bound = (32 * 4 * 4) ** -0.5
    for parameter in (second.weight, second.bias):
        assert 0.9 * bound < parameter.abs().max() <= bound
    assert float(second.weight.detach().std()) == pytest.approx(bound / 3**0.5, rel=0.02)
    assert float(module.dense.weight.detach().std()) == pytest.approx(1.41 / 128**0.5, rel=0.05)
    assert not module.dense.bias.any()


def test_a_seed_gives_the_same_encoder_and_only_the_given_generator_is_drawn_from() -> None:
    theirs, numpys = torch.get_rng_state(), np.random.get_state()[1].copy()  # type: ignore[index, union-attr]
    pairs = [(encoder(kind), encoder(kind)) for kind in SHAPES]
    for (one, other), kind in zip(pairs, SHAPES, strict=True):
        assert torch.equal(one(images(kind)), other(images(kind)))
    assert torch.equal(theirs, torch.get_rng_state())
    assert np.array_equal(numpys, np.random.get_state()[1])  # type: ignore[index]


@pytest.mark.parametrize(
    ("kind", "side"), [("fully_connected", 1), ("match3", 5), ("resnet", 15), ("simple", 20), ("nature_cnn", 36)]
)
def test_the_smallest_image_is_encoded(kind: str, side: int) -> None:
    assert encoder(kind, (side, side, 1))(torch.ones(2, side, side, 1)).shape == (2, UNITS)


@pytest.mark.parametrize("shape", [(35, 80, 3), (80, 35, 3)])
def test_a_smaller_image_is_refused_with_the_encoders_that_fit(shape: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError) as refusal:
        encoder("nature_cnn", shape)
    assert str(refusal.value) == (
        "observation camera: must be at least 36x36 pixels for vis_encode_type: nature_cnn, got "
        f"{shape[0]}x{shape[1]}. It is large enough for fully_connected, match3, resnet or simple"
    )
