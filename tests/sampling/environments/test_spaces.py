"""Spaces as columns and images: the columns of every kind of observation, action and mask."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorObservationWrapper

from rl_tui.engine.errors import EnvironmentFailure, NotSupportedError
from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.sampling.environments.gymnasium_loop import GymnasiumLoop
from rl_tui.engine.sampling.environments.gymnasium_vector import GymnasiumVector
from rl_tui.engine.specs import Actions, ActionSpec, BehaviorSpec, ObservationSpec
from tests.sampling.driving import continuous, discrete
from tests.sampling.worlds import Recording

FORMS = ["loop", "vector"]


def make(form: str, copies: list[Recording]) -> Environment:
    """The same copies in either form."""
    if form == "loop":
        return GymnasiumLoop("B", copies)
    makers = [lambda c=c: c for c in copies]
    return GymnasiumVector("B", SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP))


def spec_of(observation_space: Any = None, action_space: Any = None) -> BehaviorSpec:
    return GymnasiumLoop("B", [Recording(observation_space, action_space)]).specs["B"]


NESTED = spaces.Dict(
    {
        "joints": spaces.Tuple((spaces.Box(-1, 1, (3,)), spaces.Discrete(4, start=2))),
        "goal": spaces.Box(-1, 1, (2, 2), np.float64),
        "lights": spaces.MultiBinary(3),
        "gears": spaces.MultiDiscrete([2, 3], start=[1, 0]),
        "height": spaces.Box(0, 9, (), np.int32),
    }
)


def columns_of(space: spaces.Dict, value: Any) -> dict[str, list[float]]:
    """The columns of one sample of NESTED, written out."""
    del space
    return {
        "joints.0": value["joints"][0].tolist(),
        "joints.1": np.eye(4)[value["joints"][1] - 2].tolist(),
        "goal": value["goal"].astype(np.float32).ravel().tolist(),
        "lights": value["lights"].tolist(),
        "gears": [*np.eye(2)[value["gears"][0] - 1], *np.eye(3)[value["gears"][1]]],
        "height": [float(value["height"])],
    }


@pytest.mark.parametrize("form", FORMS)
def test_every_leaf_of_a_nested_observation_is_a_column_of_its_own(form: str) -> None:
    copies = [Recording(NESTED), Recording(NESTED), Recording(NESTED)]
    environment = make(form, copies)
    names = [observation.name for observation in environment.specs["B"].observations]
    assert sorted(names) == ["gears", "goal", "height", "joints.0", "joints.1", "lights"]
    for answer in (lambda: environment.reset(0), lambda: environment.step({"B": discrete(0, 0, 0)})):
        decisions = answer()["B"].decisions
        assert all(column.dtype == np.float32 for column in decisions.observations)
        for row, copy in enumerate(copies):
            expected = columns_of(NESTED, copy.shown)
            found = {name: column[row].tolist() for name, column in zip(names, decisions.observations, strict=True)}
            assert found == {name: pytest.approx(values) for name, values in expected.items()}


@pytest.mark.parametrize(
    ("space", "size"),
    [
        (spaces.Box(-1, 1, (3,), np.float64), 3),
        (spaces.Box(0, 255, (3,), np.uint8), 3),
        (spaces.Box(0, 1, (), np.float32), 1),
        (spaces.Box(-1, 1, (2, 3)), 6),
        (spaces.Box(-1, 1, (2, 2, 2, 2)), 16),
        (spaces.Discrete(5), 5),
        (spaces.MultiDiscrete([[2, 3], [4, 5]]), 14),
        (spaces.MultiBinary([2, 2]), 4),
    ],
    ids=str,
)
def test_bare_observation_has_one_column_of_this_size(space: Any, size: int) -> None:
    assert spec_of(space).observations == (ObservationSpec("observation", (size,)),)
    answer = GymnasiumLoop("B", [Recording(space)]).reset(0)
    assert answer["B"].decisions.observations[0].shape == (1, size)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64, np.int16], ids=str)
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((8, 9, 3), (0, 1, 2)),
        ((4, 8, 9), (1, 2, 0)),  # four frames, as a stack of them has it
        ((8, 9, 8), (0, 1, 2)),
        ((1, 9, 8), (1, 2, 0)),
        ((8, 8, 111), (0, 1, 2)),  # a board with many planes, as chess has it
    ],
    ids=str,
)
def test_three_axes_are_an_image_with_its_channels_last(
    form: str, shape: tuple[int, ...], axes: tuple[int, ...], dtype: Any
) -> None:
    copies = [Recording(spaces.Box(0, 200, shape, dtype)) for _ in range(3)]
    environment = make(form, copies)
    kept: Any = "uint8" if dtype == np.uint8 else "float32"
    expected = ObservationSpec("observation", tuple(shape[axis] for axis in axes), kept)
    assert environment.specs["B"].observations == (expected,)
    for answer in (lambda: environment.reset(0), lambda: environment.step({"B": discrete(0, 0, 0)})):
        (image,) = answer()["B"].decisions.observations
        assert image.dtype == kept
        np.testing.assert_array_equal(image, np.stack([copy.shown.transpose(axes) for copy in copies]).astype(kept))


@pytest.mark.parametrize("form", FORMS)
def test_bytes_in_two_axes_are_an_image_of_one_channel(form: str) -> None:
    copies = [Recording(spaces.Box(0, 255, (5, 7), np.uint8)) for _ in range(2)]
    environment = make(form, copies)
    assert environment.specs["B"].observations == (ObservationSpec("observation", (5, 7, 1), "uint8"),)
    (image,) = environment.reset(0)["B"].decisions.observations
    np.testing.assert_array_equal(image[..., 0], [copy.shown for copy in copies])


@pytest.mark.parametrize("form", FORMS)
def test_cameras_vectors_and_goals_stand_side_by_side(form: str) -> None:
    inner = spaces.Dict({"desired_goal": spaces.Dict({"place": spaces.Box(-1, 1, (2,)), "gear": spaces.Discrete(3)})})
    eyes = spaces.Tuple((spaces.Box(0, 255, (6, 6, 3), np.uint8), spaces.Box(0, 1, (2, 6, 6))))
    space = spaces.Dict({"achieved_goal": spaces.Box(-1, 1, (2,)), "eyes": eyes, "task": inner})
    copies = [Recording(space), Recording(space)]
    environment = make(form, copies)
    specs = environment.specs["B"].observations
    assert set(specs) == {
        ObservationSpec("achieved_goal", (2,)),
        ObservationSpec("eyes.0", (6, 6, 3), "uint8"),
        ObservationSpec("eyes.1", (6, 6, 2)),
        ObservationSpec("task.desired_goal.place", (2,), is_goal=True),
        ObservationSpec("task.desired_goal.gear", (3,), is_goal=True),
    }
    environment.reset(0)
    seen = environment.step({"B": discrete(0, 0)})["B"].decisions.observations
    by_name = {spec.name: column for spec, column in zip(specs, seen, strict=True)}
    for row, copy in enumerate(copies):
        np.testing.assert_array_equal(by_name["eyes.0"][row], copy.shown["eyes"][0])
        np.testing.assert_array_equal(by_name["eyes.1"][row], copy.shown["eyes"][1].transpose(1, 2, 0))
        np.testing.assert_array_equal(
            by_name["task.desired_goal.place"][row], copy.shown["task"]["desired_goal"]["place"]
        )


def test_image_that_goes_in_as_it_is_lies_in_memory_as_it_is_read() -> None:
    """One write into the row, in any order of its axes, and nothing after it."""
    environment = GymnasiumLoop("B", [Recording(spaces.Box(0, 255, (4, 20, 20), np.uint8))])
    first = environment.reset(0)["B"].decisions.observations[0]
    second = environment.step({"B": discrete(0)})["B"].decisions.observations[0]
    assert first.flags.c_contiguous
    assert np.shares_memory(first, second)


class Floating(VectorObservationWrapper[Any, Any, Any]):
    """Shows floats where its space has bytes."""

    def observations(self, observations: Any) -> Any:
        return observations / 255


@pytest.mark.parametrize("form", FORMS)
def test_floats_in_a_space_of_bytes_are_refused_by_name(form: str) -> None:
    """They would all be 0."""

    class OutsideItsSpace(Recording):
        def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
            shown, infos = super().reset(**kwargs)
            return (shown / 255 if form == "loop" else shown), infos

    copy = OutsideItsSpace(spaces.Box(0, 255, (8, 8, 3), np.uint8))
    environment: Environment = GymnasiumLoop("B", [copy])
    if form == "vector":
        environment = GymnasiumVector("B", Floating(SyncVectorEnv([lambda: copy])))
    with pytest.raises(EnvironmentFailure, match="'observation' must be uint8 like its space, got float64"):
        environment.reset(0)


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (spaces.Text(5), "'observation': Text spaces are not supported: use numbers"),
        (spaces.Graph(spaces.Box(0, 1, (2,)), None), "'observation': Graph .* Boxes of a fixed size"),
        (spaces.Tuple([spaces.OneOf([spaces.Discrete(2)])]), "'0': OneOf .* a Dict of its spaces"),
        (spaces.Discrete(10**6), "'observation': must have at most 10,000 choices, got 1,000,000. Return numbers"),
        (spaces.MultiDiscrete([9000, 9000]), "'observation': must have at most 10,000 choices, got 18,000"),
        (
            spaces.Dict({"a": spaces.Sequence(spaces.Box(0, 1, (3,)))}),
            r"'a': Sequence .* shape \(most entities, features",
        ),
        (spaces.Dict({"eye": spaces.Box(0, 1, (4, 8, 8, 3), np.uint8)}), "'eye': .* stack frames along its channels"),
        (spaces.Box(0, 1, (0,)), "is empty"),
        (spaces.Box(0, 1, (3, 0, 3)), "is empty"),
        (spaces.Dict({}), "is empty"),
    ],
    ids=str,
)
def test_observation_that_is_neither_number_nor_choice_is_refused_by_name(space: Any, words: str) -> None:
    with pytest.raises(NotSupportedError, match=words):
        spec_of(space)


def test_leaf_without_numbers_is_left_out() -> None:
    space = spaces.Dict({"a": spaces.Box(0, 1, (0, 3)), "b": spaces.Box(0, 1, (2,)), "c": spaces.Box(0, 9, (2, 0, 2))})
    assert [seen.name for seen in spec_of(space).observations] == ["b"]
    environment = GymnasiumLoop("B", [Recording(space)])
    assert len(environment.observation_bounds) == 1
    assert environment.reset(0)["B"].decisions.observations[0].shape == (1, 2)


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (spaces.Text(5), "'action': Text spaces are not supported: use numbers"),
        (spaces.Box(-200, 200, (2,), np.int32), "'action': a Box of int32 must have at most 256 values .* got 401"),
        (spaces.Box(-(2**63), 2**63 - 1, (2,), np.int64), "'action': a Box of int64 must .* a Box of floats and round"),
        (spaces.Discrete(10**6), "'action': must have at most 10,000 choices, got 1,000,000. Make them several"),
        (spaces.Dict({}), "the action space is empty"),
    ],
    ids=str,
)
def test_action_that_is_neither_number_nor_choice_is_refused_by_name(space: Any, words: str) -> None:
    with pytest.raises(NotSupportedError, match=words):
        spec_of(action_space=space)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64], ids=str)
@pytest.mark.parametrize(
    ("low", "high", "taken"),  # taken: for -1, 0.5 and 1
    [
        (-2, 2, (-2, 1, 2)),
        (0.1, 0.3, (0.1, 0.25, 0.3)),
        (-np.inf, np.inf, (-1, 0.5, 1)),
        (-5, np.inf, (-1, 0.5, 1)),
        (0, np.inf, (0, 1.5, 2)),
        (7, np.inf, (7, 8.5, 9)),
        (-np.inf, 9, (-1, 0.5, 1)),
        (-np.inf, -3, (-5, -3.5, -3)),
        (3, 3, (3, 3, 3)),
    ],
)
def test_dimension_with_two_bounds_is_rescaled_and_one_with_a_single_bound_keeps_to_it(
    form: str, dtype: Any, low: float, high: float, taken: tuple[float, ...]
) -> None:
    copies = [Recording(action_space=spaces.Box(low, high, (2,), dtype)) for _ in range(3)]
    environment = make(form, copies)
    assert environment.specs["B"].actions == ActionSpec(2)
    environment.reset(0)
    environment.step({"B": continuous([-1, -1], [0.5, 0.5], [1, 1])})
    given = [copy.taken[0] for copy in copies]
    assert all(action.dtype == dtype and action.shape == (2,) for action in given)
    assert np.array(given) == pytest.approx(np.repeat(taken, 2).reshape(3, 2), abs=2e-4)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(5))
def test_rescaled_action_never_leaves_its_box(form: str, seed: int) -> None:
    """Recording asserts that the space contains what it is given; rounding alone would step over some bounds."""
    random = np.random.default_rng(seed)
    low = random.normal(size=(2, 3)).astype(np.float32)
    box = spaces.Box(low, low + random.random((2, 3)).astype(np.float32))
    environment = make(form, [Recording(action_space=box), Recording(action_space=box)])
    environment.reset(0)
    environment.step({"B": continuous([1.0] * 6, [-1.0] * 6)})


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("space", "branches", "expected"),
    [
        (spaces.Discrete(3, start=-1), (3,), 1),
        (spaces.MultiDiscrete([3, 4], start=[0, 5]), (3, 4), [2, 8]),
        (spaces.MultiDiscrete([[3], [4]]), (3, 4), [[2], [3]]),
        (spaces.MultiBinary(2), (2, 2), [1, 1]),
        (spaces.Box(-1, 4, (1, 2), np.int16), (6, 6), [[4, 4]]),
        (spaces.Box(np.array([0, 3], np.uint8), np.array([255, 4], np.uint8), dtype=np.uint8), (256, 2), [255, 4]),
    ],
    ids=str,
)
def test_choices_count_from_their_start(form: str, space: Any, branches: tuple[int, ...], expected: Any) -> None:
    copies = [Recording(action_space=space), Recording(action_space=space)]
    environment = make(form, copies)
    assert environment.specs["B"].actions == ActionSpec(0, branches)
    environment.reset(0)
    environment.step({"B": discrete([0] * len(branches), [size - 1 for size in branches])})
    assert np.asarray(copies[1].taken[0]).tolist() == expected


@pytest.mark.parametrize("form", FORMS)
def test_nested_action_has_both_kinds_at_once(form: str) -> None:
    space = spaces.Dict(
        {"aim": spaces.Box(-2, 2, (2,)), "keys": spaces.Tuple((spaces.Discrete(3), spaces.MultiBinary(1)))}
    )
    copies = [Recording(action_space=space), Recording(action_space=space)]
    environment = make(form, copies)
    assert environment.specs["B"].actions == ActionSpec(2, (3, 2))
    environment.reset(0)
    environment.step({"B": Actions(np.array([[0, 0], [0.5, -1]], np.float32), np.array([[0, 0], [2, 1]], np.int64))})
    taken = copies[1].taken[0]
    assert taken["aim"].tolist() == [1.0, -2.0]
    assert int(taken["keys"][0]) == 2
    assert taken["keys"][1].tolist() == [1]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("space", "mask"),
    [
        (spaces.Discrete(3), np.array([1, 0, 1], np.int8)),
        (spaces.MultiDiscrete([2, 1]), (np.array([1, 0], np.int8), np.array([1], np.int8))),
        (spaces.MultiDiscrete([2, 1]), np.array([True, False, True])),
    ],
    ids=str,
)
def test_mask_of_the_infos_is_used_and_a_copy_without_one_may_do_anything(form: str, space: Any, mask: Any) -> None:
    copies = [Recording(action_space=space, infos={"action_mask": mask}), Recording(action_space=space)]
    flat = np.concatenate([np.ravel(part) for part in (mask if isinstance(mask, tuple) else [mask])]).astype(bool)
    environment = make(form, copies)
    branches = len(environment.specs["B"].actions.branches)
    for answer in (environment.reset(0), environment.step({"B": discrete([0] * branches, [0] * branches)})):
        found = answer["B"].decisions.action_mask
        assert found is not None
        assert found.dtype == np.bool_
        assert found.tolist() == [flat.tolist(), [True] * 3]


@pytest.mark.parametrize("form", FORMS)
def test_mask_of_another_size_is_refused(form: str) -> None:
    environment = make(form, [Recording(infos={"action_mask": np.ones(5, np.int8)})])
    with pytest.raises(EnvironmentFailure, match="action_mask must have 2 entries, got 5"):
        environment.reset(0)


@pytest.mark.parametrize("form", FORMS)
def test_choice_outside_its_space_is_refused_by_name(form: str) -> None:
    class OutsideItsSpace(Recording):
        def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
            super().reset(**kwargs)
            return np.int64(9), {}

    with pytest.raises(EnvironmentFailure, match="'observation' has a value outside its space"):
        make(form, [OutsideItsSpace(spaces.Discrete(3))]).reset(0)
