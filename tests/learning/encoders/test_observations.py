"""Observations of several kinds together, and which of their columns are goals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from rl_tui.engine.config.network import NetworkSettings
from rl_tui.engine.errors import ConfigError, NotSupportedError
from rl_tui.engine.learning.encoders.observations import ObservationEncoder
from rl_tui.engine.learning.feature_layout import FeatureLayout, Features
from rl_tui.engine.specs import ObservationSpec

SPEED = ObservationSpec("speed", (3,))
PLACE = ObservationSpec("place", (2,), is_goal=True)
WANTED = ObservationSpec("wanted", (1,), is_goal=True)
EYE = ObservationSpec("eye", (20, 24, 3), "uint8")
DEPTH = ObservationSpec("depth", (22, 20, 1))
PICTURE = ObservationSpec("picture", (20, 20, 1), "uint8", is_goal=True)
TARGETS = ObservationSpec("targets", (3, 2), is_goal=True)
ENEMIES = ObservationSpec("enemies", (4, 3))
WALLS = ObservationSpec("walls", (2, 5))
U = 8


def encoder(*specs: ObservationSpec, **settings: Any) -> ObservationEncoder:
    network = NetworkSettings(hidden_units=U, **settings)
    return ObservationEncoder(np.random.default_rng(0), FeatureLayout(specs), network)


def features(*specs: ObservationSpec, rows: int = 2) -> Features:
    """As a `FeatureLayout` splits observations."""
    random = np.random.default_rng(1)
    layout = FeatureLayout(specs)
    observations = tuple(
        random.integers(0, 256, (rows, *spec.shape), np.uint8)
        if spec.dtype == "uint8"
        else random.standard_normal((rows, *spec.shape)).astype(np.float32)
        for spec in specs
    )
    return tuple(map(torch.from_numpy, layout.split(observations)))


def test_vectors_pass_through_as_the_same_tensor() -> None:
    seen = features(SPEED, WANTED)
    assert encoder(SPEED, WANTED)(seen) is seen[0]


@pytest.mark.parametrize(
    ("specs", "columns"),
    [
        ((SPEED,), 3),
        ((EYE,), U),
        ((ENEMIES,), 128),
        ((EYE, SPEED, DEPTH), 3 + 2 * U),
        ((ENEMIES, SPEED, EYE, PLACE, WALLS, DEPTH), 5 + 2 * U + 128),
    ],
)
def test_each_kind_gives_its_columns(specs: tuple[ObservationSpec, ...], columns: int) -> None:
    module = encoder(*specs, goal_conditioning_type="none")
    assert module.outputs == columns
    assert module(features(*specs)).shape == (2, columns)


def test_each_observation_is_encoded_by_its_own_encoder_in_its_own_columns() -> None:
    """Vectors first, then images in their order, then all sets."""
    specs = (ENEMIES, EYE, SPEED, WALLS, DEPTH)
    module = encoder(*specs)
    vectors, enemies, eye, walls, depth = features(*specs)
    encoded = module((vectors, enemies, eye, walls, depth))
    assert torch.equal(encoded[:, :3], vectors)
    torch.testing.assert_close(encoded[:, 3 : 3 + U], module.images[0](eye))
    torch.testing.assert_close(encoded[:, 3 + U : 3 + 2 * U], module.images[1](depth))
    own = encoded[:, : 3 + 2 * U]
    torch.testing.assert_close(encoded[:, 3 + 2 * U :], module.entities(own, [enemies, walls]))


def test_goal_columns_are_those_of_goal_vectors_and_goal_images() -> None:
    specs = (EYE, WANTED, SPEED, PICTURE, PLACE, ENEMIES)
    module = encoder(*specs)
    encoded = module(features(*specs))
    goals = module.goals(encoded)
    assert module.goal_outputs == 1 + 2 + U
    assert goals is not None
    expected = [encoded[:, :1], encoded[:, 4:6], encoded[:, 6 + U : 6 + 2 * U]]
    assert torch.equal(goals, torch.cat(expected, 1))
    appended = torch.cat([encoded, torch.ones(2, 4)], 1)
    assert torch.equal(module.goals(appended), goals)  # type: ignore[arg-type]  # there are goals


@pytest.mark.parametrize(
    ("specs", "conditioning"), [((SPEED, EYE, ENEMIES), "hyper"), ((SPEED, PLACE, PICTURE), "none")]
)
def test_without_goals_or_where_they_are_ordinary_there_are_no_goal_columns(
    specs: tuple[ObservationSpec, ...], conditioning: str
) -> None:
    module = encoder(*specs, goal_conditioning_type=conditioning)
    assert module.goal_outputs == 0
    assert module.goals(module(features(*specs))) is None


def test_a_set_of_entities_as_the_only_goal_is_an_ordinary_observation() -> None:
    """As in ML-Agents, which refuses it only next to another goal."""
    for conditioning in ("hyper", "none"):
        module = encoder(SPEED, TARGETS, goal_conditioning_type=conditioning)
        assert (module.outputs, module.goal_outputs) == (3 + 128, 0)
        assert module.goals(module(features(SPEED, TARGETS))) is None


def test_a_set_of_entities_next_to_another_goal_is_refused_by_name_unless_all_are_ordinary() -> None:
    with pytest.raises(NotSupportedError, match=r"^observation targets: a set of entities cannot be a goal next to"):
        encoder(PLACE, TARGETS)
    assert encoder(PLACE, TARGETS, goal_conditioning_type="none").outputs == 2 + 128


def test_the_image_that_is_too_small_is_named() -> None:
    with pytest.raises(
        ConfigError, match=r"^observation eye: must be at least 36x36 pixels for vis_encode_type: nature_"
    ):
        encoder(SPEED, ObservationSpec("large", (40, 40, 3)), EYE, vis_encode_type="nature_cnn")


def test_golden_loss_and_gradient_of_everything_together() -> None:
    specs = (EYE, SPEED, ENEMIES, PICTURE)
    module = encoder(*specs)
    loss = module(features(*specs)).square().mean()
    gradients = torch.autograd.grad(loss, list(module.parameters()))
    length = torch.cat([gradient.flatten() for gradient in gradients]).norm()
    assert (float(loss.detach()), float(length)) == pytest.approx((0.1916668, 1.045040), rel=1e-4)
