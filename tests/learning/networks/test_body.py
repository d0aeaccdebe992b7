"""Bodies and cores: what they are made of, what goals and memories change, and that they can be exported."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.learning.feature_layout import FeatureLayout, Features
from rl_tui.engine.learning.networks.body import Body, Core
from rl_tui.engine.learning.networks.memory import Sequences
from rl_tui.engine.specs import ObservationSpec

H = 8
SPEED = ObservationSpec("speed", (3,))
GOAL = ObservationSpec("goal", (2,), is_goal=True)
EYE = ObservationSpec("eye", (20, 24, 3), "uint8")
PICTURE = ObservationSpec("picture", (20, 20, 1), is_goal=True)
ENEMIES = ObservationSpec("enemies", (4, 3))
EVERYTHING = (SPEED, GOAL, EYE, PICTURE, ENEMIES)
MEMORY = {"memory_size": 6}


def settings(**given: Any) -> NetworkSettings:
    return NetworkSettings(**{"hidden_units": H, **given})


def body(*specs: ObservationSpec, **given: Any) -> Body:
    return Body(np.random.default_rng(0), FeatureLayout(specs), settings(**given))


def features(*specs: ObservationSpec, rows: int = 6) -> Features:
    """Bytes where a spec has them, otherwise floats from 0 to 1."""
    random = np.random.default_rng(1)
    observations = tuple(
        random.integers(0, 256, (rows, *spec.shape), np.uint8)
        if spec.dtype == "uint8"
        else random.random((rows, *spec.shape)).astype(np.float32)
        for spec in specs
    )
    return tuple(map(torch.from_numpy, FeatureLayout(specs).split(observations)))


def tensor(seed: int, *shape: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def test_parameters_without_goals_are_those_of_the_layers_under_the_names_policies_load() -> None:
    module = body(SPEED, GOAL, goal_conditioning_type="none", num_layers=2)
    shapes = {name: tuple(parameter.shape) for name, parameter in module.named_parameters()}
    assert shapes == {
        "core.layers.weights.0": (H, 5),
        "core.layers.weights.1": (H, H),
        "core.layers.biases.0": (H,),
        "core.layers.biases.1": (H,),
    }


@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_only_the_last_layer_is_conditioned(num_layers: int) -> None:
    module = body(SPEED, GOAL, num_layers=num_layers)
    assert len(module.core.layers.weights) == num_layers - 1
    inputs = 5 if num_layers == 1 else H
    assert module.core.conditioned is not None
    assert module.core.conditioned.base.shape == (inputs, H)
    assert module(features(SPEED, GOAL)).shape == (6, H)


@pytest.mark.parametrize("num_layers", [1, 2])
def test_goals_are_ordinary_inputs_and_make_weights(num_layers: int) -> None:
    module = body(SPEED, GOAL, num_layers=num_layers)
    (seen,) = features(SPEED, GOAL)
    encoded = module.encoder((seen,))
    other = torch.cat([seen[:, :3], seen[:, 3:].flip(0)], 1)
    expected = module.core(encoded, goals=seen[:, 3:])
    torch.testing.assert_close(module((seen,)), expected)
    assert not torch.allclose(module.core(other, goals=seen[:, 3:]), expected)
    assert not torch.allclose(module.core(encoded, goals=other[:, 3:]), expected)


def test_every_parameter_of_everything_together_gets_a_gradient() -> None:
    module = body(*EVERYTHING, memory=MEMORY)
    sequences = Sequences(np.array([2, 4]), tensor(2, 2, 6))
    module(features(*EVERYTHING), sequences).square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in module.parameters())


@pytest.mark.parametrize("specs", [(SPEED,), EVERYTHING])
def test_step_by_step_is_the_same_as_a_whole_sequence(specs: tuple[ObservationSpec, ...]) -> None:
    module, seen, memories = body(*specs, memory=MEMORY), features(*specs), tensor(2, 1, 6)
    whole = module(seen, Sequences(np.array([6]), memories))
    assert module.outputs == 3
    for row in range(6):
        hidden, memories = module.step(tuple(part[row : row + 1] for part in seen), memories)
        torch.testing.assert_close(hidden, whole[row : row + 1])


def test_without_a_memory_a_step_is_a_row_and_hands_memories_on() -> None:
    module, seen, memories = body(*EVERYTHING), features(*EVERYTHING), torch.empty(6, 0)
    hidden, after = module.step(seen, memories)
    torch.testing.assert_close(hidden, module(seen))
    assert after is memories


@pytest.mark.parametrize("memory", [None, MEMORY])
@pytest.mark.parametrize("goals", [0, 2])
@pytest.mark.parametrize("num_layers", [1, 2])
def test_each_twin_is_a_core_of_its_own(memory: dict[str, int] | None, goals: int, num_layers: int) -> None:
    network = settings(memory=memory, num_layers=num_layers)
    both = Core(np.random.default_rng(0), 5, network, twins=2, goals=goals)
    encoded, goals_of_rows = tensor(1, 6, 5), tensor(2, 6, goals) if goals else None
    lengths, memories = np.array([2, 4]), tensor(3, 2, 2, 6)
    found = both(encoded, Sequences(lengths, memories) if memory else None, goals_of_rows)
    assert found.shape == (2, 6, both.outputs)
    at_once = tensor(4, 2, 6, 6)
    read, after = both.step(encoded, at_once, goals_of_rows)
    for twin in range(2):
        one = Core(np.random.default_rng(1), 5, network, goals=goals)
        with torch.no_grad():
            for name, parameter in one.named_parameters():
                if name.startswith("memories"):
                    parameter.copy_(both.get_parameter(name.replace("memories.0", f"memories.{twin}")))
                else:
                    parameter.copy_(both.get_parameter(name)[twin])
        sequences = Sequences(lengths, memories[twin]) if memory else None
        torch.testing.assert_close(one(encoded, sequences, goals_of_rows), found[twin])
        own_read, own_after = one.step(encoded, at_once[twin], goals_of_rows)
        torch.testing.assert_close(own_read, read[twin])
        torch.testing.assert_close(own_after, after[twin])


def test_gradients_of_twins_with_goals_are_those_of_differences() -> None:
    core = Core(np.random.default_rng(0), 5, settings(hidden_units=4), twins=2, goals=2).double()
    inputs = (tensor(1, 3, 5).double().requires_grad_(), tensor(2, 3, 2).double().requires_grad_())
    assert torch.autograd.gradcheck(
        lambda encoded, goals, *_: core(encoded, None, goals), (*inputs, *core.parameters())
    )


class Exported(nn.Module):
    """A body as a function of its features side by side, as an exporter wraps it."""

    def __init__(self, module: Body):
        super().__init__()
        self.module = module

    def forward(self, *seen: Tensor) -> Tensor:
        result: Tensor = self.module(seen)
        return result


@pytest.mark.parametrize(
    ("specs", "given"),
    [
        ((SPEED, GOAL, EYE, PICTURE, ENEMIES), {"precision": "bfloat16"}),
        ((ENEMIES,), {}),
        ((SPEED, GOAL), {"num_layers": 1}),
        *[
            ((ObservationSpec("eye", (36, 37, 2), "uint8"),), {"vis_encode_type": kind})
            for kind in ("fully_connected", "match3", "resnet", "nature_cnn")
        ],
    ],
)
def test_an_exported_body_computes_the_same(specs: tuple[ObservationSpec, ...], given: dict[str, Any]) -> None:
    """Of images as floats from 0 to 1, any number of rows, and entities that are absent."""
    module = Exported(body(*specs, **given)).eval()
    seen = tuple(part / 255 if part.dtype == torch.uint8 else part for part in features(*specs))
    if ENEMIES in specs:
        seen[-1][0] = 0
        seen[-1][1, 2:] = 0
    names = [f"feature_{index}" for index in range(len(seen))]
    content = io.BytesIO()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "You are using the legacy TorchScript-based ONNX export", DeprecationWarning)
        warnings.filterwarnings("ignore", "The feature will be removed", DeprecationWarning)
        torch.onnx.export(
            module,
            tuple(part[:2] for part in seen),
            content,  # type: ignore[arg-type]  # this exporter writes to any file, its signature names paths only
            input_names=names,
            output_names=["hidden"],
            dynamic_axes={name: {0: "batch"} for name in [*names, "hidden"]},
            opset_version=15,
            dynamo=False,
        )
        expected = module(*seen)
    session = onnxruntime.InferenceSession(content.getvalue(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {name: part.numpy() for name, part in zip(names, seen, strict=True)})
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
