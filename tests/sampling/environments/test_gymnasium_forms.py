"""The loop over copies and the vectorized form: when an episode ends, and what is seen then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from rl_tui.engine.errors import ConfigError, EnvironmentFailure, NotSupportedError
from rl_tui.engine.sampling.environments.base import Environment, Rendered
from rl_tui.engine.sampling.environments.factory import make_environments
from rl_tui.engine.sampling.environments.gymnasium_loop import GymnasiumLoop
from rl_tui.engine.sampling.environments.gymnasium_vector import GymnasiumVector
from rl_tui.engine.specs import Actions, Steps
from tests.sampling.driving import discrete
from tests.sampling.worlds import Counting, Recording, vectorized


def step(environment: Environment, steps: Steps) -> Steps:
    """One step in which every waiting agent chooses 0."""
    return environment.step({"B": discrete(*[0] * len(steps.decisions.agent_ids))})["B"]


def walk(environment: Environment, num_steps: int) -> list[Steps]:
    """The first decisions and what followed, each copied."""
    import copy

    walked = [copy.deepcopy(environment.reset(0)["B"])]
    for _ in range(num_steps):
        walked.append(copy.deepcopy(step(environment, walked[-1])))
    return walked


def test_ended_copy_of_the_loop_is_in_terminals_and_newly_begun_in_decisions() -> None:
    environment = GymnasiumLoop("B", [Counting(length=2), Counting(length=3)])
    _, first, second = walk(environment, 2)
    assert first.terminals is None
    assert second.terminals is not None
    assert second.terminals.agent_ids.tolist() == [0]
    assert second.terminals.observations[0].tolist() == [[0, 2]]
    assert second.terminals.rewards.tolist() == [2]
    assert second.decisions.agent_ids.tolist() == [0, 1]
    assert second.decisions.observations[0].tolist() == [[1, 0], [0, 2]]
    assert second.decisions.rewards.tolist() == [0, 2]


def test_ended_copy_of_the_next_step_form_sits_out_its_reset_step() -> None:
    environment = GymnasiumVector("B", vectorized("NEXT_STEP"))  # episodes of 2 and 3 steps
    walked = walk(environment, 3)
    assert walked[2].terminals is not None
    assert walked[2].terminals.agent_ids.tolist() == [0]
    assert walked[2].terminals.observations[0].tolist() == [[0, 2]]
    assert walked[2].terminals.rewards.tolist() == [2]
    assert walked[2].decisions.agent_ids.tolist() == [1]
    assert walked[2].decisions.observations[0].tolist() == [[0, 2]]
    assert walked[2].decisions.rewards.tolist() == [2]
    assert walked[3].terminals is not None
    assert walked[3].terminals.agent_ids.tolist() == [1]
    assert walked[3].decisions.agent_ids.tolist() == [0]
    assert walked[3].decisions.observations[0].tolist() == [[1, 0]]
    assert walked[3].decisions.rewards.tolist() == [0]


def test_same_step_form_shows_the_final_observation_of_the_infos() -> None:
    environment = GymnasiumVector("B", vectorized("SAME_STEP"))
    second = walk(environment, 2)[2]
    assert second.terminals is not None
    assert second.terminals.observations[0].tolist() == [[0, 2]]
    assert second.terminals.rewards.tolist() == [2]
    assert second.decisions.agent_ids.tolist() == [0, 1]
    assert second.decisions.observations[0].tolist() == [[1, 0], [0, 2]]
    assert second.decisions.rewards.tolist() == [0, 2]


@pytest.mark.parametrize("mode", ["NEXT_STEP", "SAME_STEP"])
def test_decisions_are_not_empty_when_all_episodes_end_at_once(mode: str) -> None:
    environment = GymnasiumVector("B", vectorized(mode, num_envs=1, length=2))
    walked = walk(environment, 4)
    assert [len(steps.decisions.agent_ids) for steps in walked] == [1] * 5
    assert [None if s.terminals is None else s.terminals.observations[0].tolist() for s in walked] == [
        None, None, [[0, 2]], None, [[1, 2]],
    ]  # fmt: skip


def forms() -> Mapping[str, Callable[..., Environment]]:
    """A maker of one copy for each form."""
    return {
        "loop": lambda **kwargs: GymnasiumLoop("B", [Counting(**kwargs)]),
        "next step": lambda **kwargs: GymnasiumVector("B", vectorized("NEXT_STEP", 1, **kwargs)),
        "same step": lambda **kwargs: GymnasiumVector("B", vectorized("SAME_STEP", 1, **kwargs)),
    }


@pytest.mark.parametrize("form", forms())
@pytest.mark.parametrize(
    ("kwargs", "truncated"), [({}, False), ({"truncates": True}, True), ({"both": True}, False)], ids=str
)
def test_terminated_wins_over_truncated(form: str, kwargs: dict[str, bool], truncated: bool) -> None:
    last = walk(forms()[form](length=2, **kwargs), 2)[2]
    assert last.terminals is not None
    assert last.terminals.truncated.tolist() == [truncated]


@pytest.mark.parametrize("form", forms())
def test_every_reward_is_returned_once_in_every_form(form: str) -> None:
    walked = walk(forms()[form](length=3), 9)
    earned = sum(s.decisions.rewards.sum() + (0 if s.terminals is None else s.terminals.rewards.sum()) for s in walked)
    assert earned == 3 * (1 + 2 + 3)


@pytest.mark.parametrize("num_copies", [1, 3])
def test_ids_are_the_same_object_while_nothing_changes(num_copies: int) -> None:
    [environment] = make_environments("gymnasium:CartPole-v1", "B", range(num_copies), {})
    first = environment.reset(0)["B"]
    assert step(environment, first).decisions.agent_ids is first.decisions.agent_ids
    environment.close()


def test_cart_pole_uses_its_vectorized_form_and_a_missing_one_the_loop() -> None:
    for name, form in [("CartPole-v1", GymnasiumVector), ("Acrobot-v1", GymnasiumLoop)]:
        [environment] = make_environments(f"gymnasium:{name}", "B", range(2), {})
        assert isinstance(environment, form)
        environment.close()


@pytest.mark.parametrize(("kwargs", "length"), [({}, 500), ({"max_episode_steps": 30}, 30)], ids=str)
@pytest.mark.parametrize("num_copies", [1, 2])
def test_balanced_pole_is_truncated_at_the_registered_length(
    num_copies: int, kwargs: dict[str, int], length: int
) -> None:
    [environment] = make_environments("gymnasium:CartPole-v1", "B", range(num_copies), kwargs)
    steps = environment.reset(3)["B"]
    lengths = np.zeros(num_copies, int)
    endings = {}
    while len(endings) < num_copies:
        x, velocity, angle, turning = steps.decisions.observations[0].T
        pushes = (3 * angle + turning + 0.05 * x + 0.1 * velocity > 0).astype(np.int64)
        lengths[steps.decisions.agent_ids] += 1
        steps = environment.step({"B": discrete(*pushes)})["B"]
        if steps.terminals is not None:
            for agent, truncated in zip(steps.terminals.agent_ids, steps.terminals.truncated, strict=True):
                endings.setdefault(int(agent), (lengths[agent], bool(truncated)))
    assert set(endings.values()) == {(length, True)}
    environment.close()


def test_unlimited_episodes_are_left_to_the_loop() -> None:
    """The vectorized form of CartPole always has a limit."""
    [environment] = make_environments("gymnasium:CartPole-v1", "B", range(2), {"max_episode_steps": -1})
    assert isinstance(environment, GymnasiumLoop)


def test_environments_own_arguments_reach_both_forms() -> None:
    for num_copies in (1, 2):
        [environment] = make_environments(
            "gymnasium:CartPole-v1", "B", range(num_copies), {"sutton_barto_reward": True}
        )
        steps = environment.reset(0)["B"]
        assert step(environment, steps).decisions.rewards.tolist() == [0] * num_copies


def test_vectorized_form_that_does_not_reset_by_itself_is_refused_by_name() -> None:
    with pytest.raises(NotSupportedError, match="DISABLED"):
        GymnasiumVector("B", vectorized("DISABLED"))


def test_same_seed_gives_the_same_episodes_and_neighboring_seeds_share_none() -> None:
    for num_copies in (1, 4):
        seen = []
        for seed in (5, 5, 6):
            [environment] = make_environments("gymnasium:Acrobot-v1", "B", range(num_copies), {})
            seen.append({tuple(row) for row in environment.reset(seed)["B"].decisions.observations[0].tolist()})
        assert seen[0] == seen[1]
        assert len(seen[0]) == num_copies
        assert not seen[0] & seen[2]


def test_terminal_observation_remains_after_its_copy_is_reset() -> None:
    environment = GymnasiumLoop("B", [Counting(length=1)])
    steps = environment.reset(0)["B"]
    answer = step(environment, steps)
    assert answer.terminals is not None
    assert not np.shares_memory(answer.terminals.observations[0], answer.decisions.observations[0])


class Wrong(Counting):
    """Shows or rewards something else than its spaces say."""

    def __init__(self, observation: object = None, reward: object = 0.0) -> None:
        super().__init__()
        self._wrong = observation, reward

    def step(self, action: object) -> tuple[object, float, bool, bool, dict[str, object]]:
        right, _, terminated, truncated, infos = super().step(action)
        observation, reward = self._wrong
        return right if observation is None else observation, reward, terminated, truncated, infos  # type: ignore[return-value]  # on purpose


@pytest.mark.parametrize("observation", [np.zeros(3), 1.0, np.zeros((1, 2))], ids=repr)
def test_observation_of_another_shape_names_the_field_and_the_copy(observation: object) -> None:
    environment = GymnasiumLoop("B", [Counting(), Wrong(observation)])
    with pytest.raises(
        EnvironmentFailure, match=r"'observation' must have the shape \(2,\) of its space, got \("
    ) as failure:
        step(environment, environment.reset(0)["B"])
    assert failure.value.__notes__ == ["copy 1"]
    only = GymnasiumLoop("B", [Wrong(observation)])
    with pytest.raises(EnvironmentFailure) as failure:
        step(only, only.reset(0)["B"])
    assert not hasattr(failure.value, "__notes__"), "there is one copy"


@pytest.mark.parametrize("reward", [np.zeros(2), None, "much"], ids=repr)
def test_reward_that_is_no_number_names_the_copy(reward: object) -> None:
    environment = GymnasiumLoop("B", [Counting(), Wrong(reward=reward)])
    with pytest.raises(EnvironmentFailure, match="copy 1"):
        step(environment, environment.reset(0)["B"])


def test_action_stays_what_it_was_for_an_environment_that_keeps_it() -> None:
    copy = Recording(action_space=gymnasium.spaces.Box(-1, 1, (2,)))
    environment = GymnasiumLoop("B", [copy])
    environment.reset(0)
    reused = Actions(np.zeros((1, 2), np.float32), np.zeros((1, 0), np.int64))
    for value in (0.25, 0.5):
        reused.continuous[:] = value
        environment.step({"B": reused})
    assert [action.tolist() for action in copy.taken] == [[0.25, 0.25], [0.5, 0.5]]


class Drawn(Counting):
    """Draws a frame of its own, or a given one."""

    def __init__(self, render_mode: str | None = "rgb_array", frame: Any = None) -> None:
        super().__init__()
        self.render_mode = render_mode
        self.frame = np.full((4, 6, 3), 9, np.uint8) if frame is None else frame

    def render(self) -> Any:
        if isinstance(self.frame, Exception):
            raise self.frame
        return self.frame


def test_frame_of_copy_0_is_the_callers_to_keep() -> None:
    other = Drawn(frame=np.zeros((1, 1, 3), np.uint8))
    makers = [Drawn, lambda: other]
    vector = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)
    vector.render_mode = "rgb_array"
    for environment in (GymnasiumLoop("B", [Drawn(), other]), GymnasiumVector("B", vector)):
        assert isinstance(environment, Rendered)
        frame = environment.render()
        assert frame is not None
        frame[:] = 0
        again = environment.render()
        assert again is not None
        assert (again == 9).all()
        assert again.shape == (4, 6, 3)


def test_environment_of_another_render_mode_shows_no_frames() -> None:
    assert GymnasiumLoop("B", [Drawn(render_mode=None)]).render() is None
    assert GymnasiumVector("B", vectorized()).render() is None


@pytest.mark.parametrize("frame", [np.zeros((4, 6), np.uint8), np.zeros((4, 6, 3)), "text"], ids=repr)
def test_frame_of_another_shape_is_refused(frame: object) -> None:
    with pytest.raises(EnvironmentFailure, match=r"render must return uint8 \(height, width, 3\), got "):
        GymnasiumLoop("B", [Drawn(frame=frame)]).render()


def test_missing_package_for_drawing_is_the_users_to_install() -> None:
    missing = gymnasium.error.DependencyNotInstalled("pygame is not installed")
    with pytest.raises(ConfigError, match=r"needs pygame, which is not installed\. Install it with: "):
        GymnasiumLoop("B", [Drawn(frame=missing)]).render()


def test_copies_to_be_watched_are_a_loop_that_draws_one() -> None:
    [environment] = make_environments("gymnasium:CartPole-v1", "B", range(2), {"render_mode": "rgb_array"})
    assert isinstance(environment, GymnasiumLoop)
    environment.close()


class OldForm(Counting):
    """Answers as environments of the gym package did: four values of a step, or a bare observation of a reset."""

    def __init__(self, method: str) -> None:
        super().__init__()
        self._method = method

    def step(self, action: Any) -> Any:
        observation, reward, terminated, _, infos = super().step(action)
        return (observation, reward, terminated, infos) if self._method == "step" else observation

    def reset(self, **options: Any) -> Any:
        observation, infos = super().reset(**options)
        return observation if self._method == "reset" else (observation, infos)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("reset", "it must return observation, info, got ndarray"),
        (
            "step",
            r"it must return observation, reward, terminated, truncated, info, got \(ndarray, float, bool, dict\)",
        ),
        ("nothing else", "it must return observation, reward, terminated, truncated, info, got ndarray"),
    ],
)
def test_answer_of_another_form_is_named_with_what_it_must_be(method: str, words: str) -> None:
    with pytest.raises(EnvironmentFailure, match=words):
        walk(GymnasiumLoop("B", [OldForm(method)]), 1)


@pytest.mark.parametrize("num_copies", [1, 3])
def test_threshold_of_a_registered_environment_is_known_unless_a_wrapper_may_change_rewards(num_copies: int) -> None:
    """Of several copies, CartPole has a vectorized form."""
    (pole,) = make_environments("gymnasium:CartPole-v1", "B", range(num_copies), {})
    assert pole.specs["B"].reward_threshold == 475.0
    (pendulum,) = make_environments("gymnasium:Pendulum-v1", "B", range(num_copies), {})
    assert pendulum.specs["B"].reward_threshold is None
    wrapped = gymnasium.wrappers.TransformReward(gymnasium.make("CartPole-v1"), lambda reward: 10 * float(reward))
    assert GymnasiumLoop("B", [wrapped]).specs["B"].reward_threshold is None
    for environment in (pole, pendulum, wrapped):
        environment.close()
