"""The side follows from the whole cue, and from no part of it."""

from __future__ import annotations

import numpy as np
import pytest

from rl_tui.engine.sampling.environments.base import Rendered
from rl_tui.engine.specs import Float32, ObservationSpec
from tests.sampling.environments.toys.playing import make, rewards_of


def signs(values: np.ndarray) -> Float32:
    return np.where(values > 0, 1, -1).astype(np.float32)


def heaviest(entities: Float32, position: Float32) -> Float32:
    rows = np.arange(len(entities))
    return signs(entities[rows, entities[:, :, 1].argmax(axis=1), 0] - position[:, 0])


def test_only_the_heaviest_entity_gives_the_side() -> None:
    task = make("entities", 16, num_entities=5)
    steps = task.reset(1)["B"]
    assert (rewards_of(task, steps, heaviest) == 1).all()
    guesses = {
        "position": lambda _, position: -signs(position[:, 0]),
        "first": lambda entities, position: signs(entities[:, 0, 0] - position[:, 0]),
        "mean": lambda entities, position: signs(entities[:, :, 0].sum(axis=1) - position[:, 0]),
    }
    returns = {name: rewards_of(task, task.reset(1)["B"], guess).mean() for name, guess in guesses.items()}
    assert returns["position"] == pytest.approx(0.25, abs=0.05)
    assert max(returns.values()) < 0.75


def test_sets_are_of_any_size_and_padded_with_zeros() -> None:
    task = make("entities", 400, num_entities=3)
    assert task.specs["B"].observations[0] == ObservationSpec("entities", (3, 2))
    entities = task.reset(1)["B"].decisions.observations[0]
    there = entities.any(axis=2)
    assert set(there.sum(axis=1).tolist()) == {1, 2, 3}
    assert (there[:, :-1] >= there[:, 1:]).all()
    assert (entities[there][:, 1] > 0).all()
    assert set(entities[there.all(axis=1), :, 1].argmax(axis=1).tolist()) == {0, 1, 2}


def test_the_goal_says_which_target_is_rewarded() -> None:
    task = make("goal", 16, num_targets=3)
    assert [spec.is_goal for spec in task.specs["B"].observations] == [False, True]
    assert (rewards_of(task, task.reset(1)["B"], lambda targets, goal: (targets * goal).sum(axis=1)) == 1).all()
    assert rewards_of(task, task.reset(1)["B"], lambda targets, _: signs(targets.sum(axis=1))).mean() < 0.6
    assert rewards_of(task, task.reset(1)["B"], lambda _, goal: signs(goal[:, 0] - 0.5)).mean() < 0.1


@pytest.mark.parametrize("size", [8, 20, 37])
def test_the_bright_half_of_the_image_is_the_side(size: int) -> None:
    task = make("pixels", 16, size=size)
    assert task.specs["B"].observations == (ObservationSpec("image", (size, size, 1), "uint8"),)
    steps = task.reset(1)["B"]
    image = steps.decisions.observations[0]
    assert image.dtype == np.uint8
    assert ((image >= 192).sum(axis=(1, 2, 3)) == (size // 4) ** 2).all()

    def brighter(image: np.ndarray) -> Float32:
        is_bright = image[..., 0] >= 192
        assert not is_bright[:, :, size // 2 : (size + 1) // 2].any(), "the middle column is on no side"
        return signs(
            is_bright[:, :, (size + 1) // 2 :].sum(axis=(1, 2)) - is_bright[:, :, : size // 2].sum(axis=(1, 2))
        )

    assert (rewards_of(task, steps, brighter, 50) == 1).all()


def test_cue_with_an_image_can_be_watched() -> None:
    pixels, entities = make("pixels", 2), make("entities", 2)
    assert isinstance(pixels, Rendered)
    assert isinstance(entities, Rendered)
    image = pixels.reset(1)["B"].decisions.observations[0][0]
    frame = pixels.render()
    assert frame is not None
    assert frame.shape == (320, 320, 3)
    np.testing.assert_array_equal(frame[8::16, 8::16], image.repeat(3, axis=2))
    entities.reset(1)
    assert entities.render() is None


@pytest.mark.parametrize("task", ["entities", "goal", "pixels"])
def test_observations_are_not_overwritten_by_the_next_step(task: str) -> None:
    """The final observations of an episode are those its action was for."""
    environment = make(task)
    steps = environment.reset(0)["B"]
    shown = [column.copy() for column in steps.decisions.observations]
    rewards_of(environment, steps, lambda *seen: np.zeros(len(seen[0]), np.float32), 3)
    for before, after in zip(shown, steps.decisions.observations, strict=True):
        np.testing.assert_array_equal(before, after)
