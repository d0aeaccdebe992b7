"""Agents of a BaseEnv come through as they are, and actions go back."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from rl_tui.engine.errors import EnvironmentFailure
from rl_tui.engine.sampling.environments.base_env.environment import BaseEnvironment
from rl_tui.engine.sampling.environments.factory import make_environments
from rl_tui.engine.sampling.pools.instance import Instance
from rl_tui.engine.specs import ActionSpec, DecisionSteps, ObservationSpec, Steps, TerminalSteps
from tests.sampling.base_env.disguise import Acts, Disguised, Kind, Seen, Spec, Waiting, toy
from tests.sampling.driving import actions_for
from tests.sampling.skirmish import Skirmish
from tests.sampling.worlds import TwoKinds

TOYS = [
    ("line", {"actions": "hybrid", "masked": True}),
    ("goal", {"actions": "discrete", "masked": True}),
    ("entities", {}),
    ("pixels", {"size": 12}),
    ("memory", {"actions": "continuous"}),
]


@pytest.mark.parametrize(("name", "arguments"), TOYS)
def test_every_column_is_that_of_the_environment_behind_it(name: str, arguments: dict[str, Any]) -> None:
    [plain] = make_environments(f"toy:{name}", "Walker", range(3), arguments)
    adapted = BaseEnvironment(toy(name, **arguments))
    assert adapted.specs == plain.specs
    assert adapted.num_agents == {"Walker": 3}
    expected, found = plain.reset(5), adapted.reset(5)
    random, spec = np.random.default_rng(1), plain.specs["Walker"]
    for _ in range(40):
        assert_equal(found["Walker"], expected["Walker"])
        actions = {"Walker": actions_for(spec, 3, random)}
        expected, found = plain.step(actions), adapted.step(actions)


def test_groups_teams_and_late_behaviors_are_those_of_the_environment_behind_it() -> None:
    plain, adapted = Skirmish(late=30, end=60), BaseEnvironment(Disguised(Skirmish(late=30, end=60)))
    expected, found = plain.reset(2), adapted.reset(2)
    second = 2**40  # the ids of the second team begin there
    for _ in range(59):
        assert found.keys() == {name for name in expected if has_agents(expected[name])}
        for name, steps in found.items():
            assert_equal(steps, expected[name], second if name == "Soldier?team=1" else 0)
        actions = {
            name: actions_for(adapted.specs[name], len(s.decisions.agent_ids), RANDOM) for name, s in found.items()
        }
        expected, found = plain.step(actions), adapted.step(actions)
    assert list(adapted.specs) == list(plain.specs) == ["Soldier?team=0", "Soldier?team=1", "Scout"]
    for name, spec in plain.specs.items():
        assert (adapted.specs[name].observations, adapted.specs[name].actions) == (spec.observations, spec.actions)


RANDOM = np.random.default_rng(0)


def has_agents(steps: Steps) -> bool:
    return bool(len(steps.decisions.agent_ids)) or steps.terminals is not None


def assert_equal(found: Steps, expected: Steps, shift: int = 0) -> None:
    """Ids and groups are larger by `shift`, groups by one more; absent columns may be full of what they mean."""
    assert_columns(found.decisions, expected.decisions, shift)
    assert (found.terminals is None) == (expected.terminals is None)
    mask = expected.decisions.action_mask
    assert_mask(found.decisions, mask)
    if found.terminals is not None and expected.terminals is not None:
        assert_columns(found.terminals, expected.terminals, shift)
        np.testing.assert_array_equal(found.terminals.truncated, expected.terminals.truncated)


def assert_mask(found: DecisionSteps, expected: Any) -> None:
    if found.action_mask is None:
        assert expected is None or expected.all()
    else:
        np.testing.assert_array_equal(found.action_mask, expected)


def assert_columns(found: DecisionSteps | TerminalSteps, expected: DecisionSteps | TerminalSteps, shift: int) -> None:
    count = len(expected.agent_ids)
    np.testing.assert_array_equal(found.agent_ids, expected.agent_ids + shift)
    np.testing.assert_array_equal(found.rewards, expected.rewards)
    for seen, values in zip(found.observations, expected.observations, strict=True):
        assert seen.dtype == values.dtype
        np.testing.assert_array_equal(seen, values)
    groups = np.full(count, -1) if expected.group_ids is None else expected.group_ids
    raised = np.where(groups < 0, -1, groups + shift + 1)
    np.testing.assert_array_equal(np.full(count, -1) if found.group_ids is None else found.group_ids, raised)
    shared = np.zeros(count) if expected.group_rewards is None else expected.group_rewards
    np.testing.assert_array_equal(np.zeros(count) if found.group_rewards is None else found.group_rewards, shared)


def test_behaviors_whose_agents_do_not_always_wait_get_actions_only_when_they_do() -> None:
    plain, adapted = TwoKinds(), Instance(BaseEnvironment(Disguised(TwoKinds())))
    expected, found = plain.reset(0), adapted.reset(0)
    expected["Leader"].decisions.rewards[:] = 0  # which are due to no action
    for _ in range(9):
        assert found.keys() == expected.keys()
        for name, steps in expected.items():
            assert_equal(found[name], steps)
        actions = {
            name: actions_for(plain.specs[name], len(s.decisions.agent_ids), RANDOM) for name, s in expected.items()
        }
        everyone = {name: actions.get(name, actions_for(spec, 0, RANDOM)) for name, spec in plain.specs.items()}
        expected, found = plain.step(everyone), adapted.step(actions)


class Still:
    """One agent; every reset pays 5, every step 1, the third one 2 and, to the agent in its next episode, 7."""

    def __init__(self, observations: list[Seen] | None = None, arrays: list[Any] | None = None) -> None:
        self.observations = observations or [Seen((2,), (1,))]
        self.behavior_specs = {"Rock": Spec(self.observations, Acts(0, (2, 3)))}
        self.arrays = arrays or [np.zeros((1, *one.shape)) for one in self.observations]
        self.mask: Any = None
        self.num_resets = 0
        self.count = 0

    def reset(self) -> None:
        self.num_resets += 1
        self.count = 0

    def step(self) -> None:
        self.count += 1

    def set_actions(self, behavior_name: str, action: Any) -> None:
        self.acted = action

    def get_steps(self, behavior_name: str) -> tuple[Any, Any]:
        at = self.count % 3
        over = self.count > 0 and at == 0
        waiting = self.steps([5 if self.count == 0 else 7 if over else 1])
        ended = self.steps([2] if over else [])
        ended.interrupted = np.array([True] if over else [], bool)
        return waiting, ended

    def steps(self, rewards: list[float]) -> Any:
        count = len(rewards)
        arrays = [values[:count] for values in self.arrays]
        zeros = np.zeros(count, np.int32)
        return Waiting(arrays, np.array(rewards), zeros, self.mask, zeros, np.array(rewards))

    def close(self) -> None:
        pass


def no_actions() -> dict[str, Any]:
    return {"Rock": actions_for(BaseEnvironment(Still()).specs["Rock"], 1, RANDOM)}


def test_what_precedes_the_first_action_of_an_episode_is_not_paid() -> None:
    environment = BaseEnvironment(Still())
    first = environment.reset(None)["Rock"].decisions
    assert (first.rewards.tolist(), first.group_rewards) == ([0], None)
    answers = [environment.step(no_actions())["Rock"] for _ in range(3)]
    assert [answer.decisions.total_rewards.tolist() for answer in answers] == [[2], [2], [0]]
    final = answers[-1].terminals
    assert final is not None
    assert (final.total_rewards.tolist(), final.truncated.tolist()) == ([4], [True])


def test_the_first_reset_is_that_of_the_start_unless_a_seed_is_taken() -> None:
    unseeded, seeded = Still(), toy("line")
    environment, other = BaseEnvironment(unseeded), BaseEnvironment(seeded)
    environment.reset(3)
    assert unseeded.num_resets == 1
    environment.reset(3)
    assert unseeded.num_resets == 2
    first, again, different = (other.reset(seed)["Walker"].decisions.observations for seed in (3, 3, 4))
    np.testing.assert_array_equal(first[0], again[0])
    assert not np.array_equal(first[0], different[0])


def test_actions_may_be_kept_since_they_are_copies() -> None:
    still = Still()
    environment, actions = BaseEnvironment(still), no_actions()
    environment.reset(None)
    kept = actions["Rock"].discrete.tolist()
    environment.step(actions)
    actions["Rock"].discrete[:] = -1
    assert still.acted.discrete.tolist() == kept


def test_ids_that_stay_are_the_same_array() -> None:
    environment = BaseEnvironment(Still())
    first = environment.reset(None)["Rock"].decisions.agent_ids
    assert environment.step(no_actions())["Rock"].decisions.agent_ids is first


def test_observations_are_named_and_typed_as_they_come() -> None:
    image = (1, 2, 2)
    seen = [
        Seen((3,), (1,)),
        Seen((4, 2), (4, 1), Kind.GOAL_SIGNAL, "wanted"),
        Seen((3, 5, 6), image, name="camera"),
        Seen((5, 6, 3), (2, 2, 1), name="camera"),
        Seen((1, 5, 6), (0, 0, 0)),
    ]
    arrays = [np.zeros((1, *one.shape), np.uint8 if one.name == "camera" else np.float64) for one in seen]
    environment = BaseEnvironment(Still(seen, arrays))
    assert environment.specs["Rock"].observations == (
        ObservationSpec("obs_0", (3,)),
        ObservationSpec("wanted", (4, 2), is_goal=True),
        ObservationSpec("camera", (5, 6, 3), "uint8"),
        ObservationSpec("camera_2", (5, 6, 3), "uint8"),
        ObservationSpec("obs_4", (5, 6, 1)),
    )
    assert environment.specs["Rock"].actions == ActionSpec(0, (2, 3))
    Instance(environment).reset(None)  # which checks shapes and types


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (Seen((), ()), r"^Rock: observation 'obs_0' must have one to three axes of at least 1, got the shape \[\]"),
        (Seen((2, 0), (4, 1)), r"must have one to three axes of at least 1, got the shape \[2, 0\]"),
        (Seen((2, 2), (1, 1)), r"the first must be of variable size, got the dimension_property \[1, 1\]"),
    ],
)
def test_observations_that_cannot_be_learned_from_are_refused(seen: Seen, words: str) -> None:
    with pytest.raises(EnvironmentFailure, match=words):
        BaseEnvironment(Still([seen])).reset(None)


def test_actions_without_a_choice_are_refused() -> None:
    still = Still()
    still.behavior_specs["Rock"].action_spec = Acts(1, (2, 0))
    with pytest.raises(EnvironmentFailure, match=r"Rock: actions must have .*, got 1 and \[2, 0\]"):
        BaseEnvironment(still).reset(None)


def test_steps_that_do_not_fit_are_refused_by_name() -> None:
    still = Still()
    environment = Instance(BaseEnvironment(still))
    environment.reset(None)
    still.mask = [np.array([[True, False]]), np.array([[True, False]])]
    shapes = "[(1, 2), (1, 3)], got [(1, 2), (1, 2)]"
    words = re.escape(f"Rock: action_mask must have an array for each branch, of shapes {shapes}")
    with pytest.raises(EnvironmentFailure, match=words):
        environment.step(no_actions())
    still.mask, still.arrays = None, [np.zeros((1, 3))]
    with pytest.raises(EnvironmentFailure, match=r"observation 'obs_0' must be float32 \(1, 2\)"):
        environment.step(no_actions())
    still.arrays = []
    with pytest.raises(EnvironmentFailure, match="Rock: obs must have 1 arrays, got 0"):
        environment.step(no_actions())
