"""Wrappers of a file around each copy of an environment."""

from __future__ import annotations

import json
import sys
from typing import Any

import gymnasium
import pytest

from rl_tui.engine.config.adaptation import Adaptation
from rl_tui.engine.config.wrappers import read_wrappers
from rl_tui.engine.errors import ConfigError, RlTuiError
from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.sampling.environments.factory import EnvironmentSource
from rl_tui.engine.sampling.environments.gymnasium_loop import GymnasiumLoop
from rl_tui.engine.sampling.environments.wrappers import RepeatAction
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.specs import ActionSpec, Json
from tests.deadline import DEADLINE_SECONDS
from tests.sampling.driving import discrete
from tests.sampling.worlds import Counting

WORLDS = "tests.sampling.worlds"
REPEAT = "rl_tui.engine.sampling.environments.wrappers:RepeatAction"
TIME_LIMIT: Json = {"gymnasium.wrappers:TimeLimit": {"max_episode_steps": 2}}


class Doubled(gymnasium.RewardWrapper[Any, Any]):
    """Rewards are twice as high, plus something."""

    def __init__(self, env: Any, more: float = 0.0) -> None:
        super().__init__(env)
        self.more = more

    def reward(self, reward: Any) -> float:
        return 2 * float(reward) + self.more


def forgets(env: Any) -> None:
    """Returns nothing."""


def source(*wrappers: Json, env: str = f"{WORLDS}:Counting", **kwargs: Json) -> EnvironmentSource:
    return EnvironmentSource(env, "B", kwargs, adaptation=Adaptation(wrappers=read_wrappers(list(wrappers))))


def rewards(environment: Environment, num_steps: int) -> list[float]:
    """What copy 0 earns in each step, whether its episode ends or not."""
    environment.reset(0)
    earned = []
    for _ in range(num_steps):
        steps = environment.step({"B": discrete(*[0] * environment.num_agents["B"])})["B"]
        ended = steps.terminals is not None and 0 in steps.terminals.agent_ids
        earned.append(float((steps.terminals if ended and steps.terminals else steps.decisions).rewards[0]))
    return earned


def test_wrappers_are_applied_in_order_the_first_innermost() -> None:
    inner = {f"{__name__}:Doubled": {"more": 1.0}}
    [environment] = source(inner, f"{__name__}:Doubled", length=4).make(0, 2)
    assert rewards(environment, 3) == [2 * (2 * step + 1) for step in (1, 2, 3)]
    assert environment.num_agents == {"B": 2}


def test_time_limit_ends_episodes_of_an_environment_that_has_none() -> None:
    [environment] = source(TIME_LIMIT, env="gymnasium:CliffWalking-v1").make(0, 2)
    environment.reset(0)
    assert environment.step({"B": discrete(0, 0)})["B"].terminals is None
    terminals = environment.step({"B": discrete(0, 0)})["B"].terminals
    assert terminals is not None
    assert terminals.truncated.tolist() == [True, True]


def test_wrapped_id_with_a_vectorized_form_is_a_loop() -> None:
    [plain] = source(env="gymnasium:CartPole-v1").make(0, 2)
    [wrapped] = source(TIME_LIMIT, env="gymnasium:CartPole-v1").make(0, 2)
    assert not isinstance(plain, GymnasiumLoop)
    assert isinstance(wrapped, GymnasiumLoop)


def test_spaces_are_those_of_the_outermost() -> None:
    flat = source("gymnasium.wrappers:FlattenObservation", env="gymnasium:FrozenLake-v1").make(0, 1)[0]
    assert flat.specs["B"].observations[0].shape == (16,)
    clipped = source("gymnasium.wrappers:ClipAction", env="gymnasium:Pendulum-v1").make(0, 1)[0]
    assert clipped.specs["B"].actions == ActionSpec(1)
    stacked: Json = {"gymnasium.wrappers:FrameStackObservation": {"stack_size": 4}}
    assert source(stacked, env="gymnasium:Pendulum-v1").make(0, 1)[0].specs["B"].observations[0].shape == (12,)


def test_worker_processes_have_the_same_wrappers() -> None:
    made = source({f"{__name__}:Doubled": {"more": 3.0}}, length=9)
    read = EnvironmentSource.from_json(json.loads(json.dumps(made.to_json())))
    assert read.adaptation.wrappers == made.adaptation.wrappers
    pool = ProcessPool(made, 1, 1)
    pool.start()
    try:
        pool.reset(0)
        pool.receive(DEADLINE_SECONDS)
        pool.send(0, {"B": discrete(0)})
        [(_, answer)] = pool.receive(DEADLINE_SECONDS)
        assert answer["B"].decisions.rewards.tolist() == [5.0]
    finally:
        pool.close()


class NeedsMore(Doubled):
    """Cannot be made without a package."""

    def __init__(self, env: Any) -> None:
        raise gymnasium.error.DependencyNotInstalled("moviepy is not installed")


def test_wrapper_without_its_package_says_what_is_missing() -> None:
    with pytest.raises(ConfigError, match=f"^env_settings.wrappers: {__name__}:NeedsMore: moviepy is not installed"):
        source(f"{__name__}:NeedsMore", env="gymnasium:Acrobot-v1").make(0, 1)


def test_wrapper_without_opencv_names_the_extra_that_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gymnasium names its own extra, which installs a build that needs a display's libraries."""
    monkeypatch.setitem(sys.modules, "cv2", None)  # as if it was not installed
    with pytest.raises(ConfigError) as raised:
        source("gymnasium.wrappers:AtariPreprocessing").make(0, 1)
    words = "env_settings.wrappers: gymnasium.wrappers:AtariPreprocessing: it needs OpenCV, which is not installed."
    assert str(raised.value).startswith(f"{words} Install it with: ")
    assert "atari" in str(raised.value) or "opencv-python-headless" in str(raised.value)


def test_wrapper_of_gymnasium_is_refused_around_an_environment_of_pettingzoo() -> None:
    words = "^env_settings.wrappers: gymnasium.wrappers:TimeLimit must be for a ParallelEnv or AECEnv of PettingZoo"
    with pytest.raises(ConfigError, match=words):
        source(TIME_LIMIT, env="pettingzoo:classic/tictactoe_v3").make(0, 1)


def test_repeated_action_sums_rewards_and_stops_at_the_end_of_an_episode() -> None:
    [environment] = source({REPEAT: {"times": 3}}, length=5).make(0, 1)
    assert rewards(environment, 3) == [1 + 2 + 3, 4 + 5, 1 + 2 + 3]


@pytest.mark.parametrize("times", [0, 1.5, True, "two"])
def test_repetitions_must_be_a_whole_number(times: Any) -> None:
    with pytest.raises(ConfigError, match="times must be a whole number from 1"):
        RepeatAction(Counting(), times)


@pytest.mark.parametrize(
    ("wrapper", "message"),
    [
        ("gymnasium.wrappers:TimeLimi", "module gymnasium.wrappers has no attribute 'TimeLimi'. Did you mean TimeLim"),
        ("nowhere_at_all:A", "env_settings.wrappers: nowhere_at_all:A: no module named 'nowhere_at_all'"),
        (
            "gymnasium.wrappers:TimeLimit",
            r"TimeLimit: invalid arguments: .*missing a required argument: 'max_episode_s",
        ),
        ({REPEAT: {"time": 3}}, "RepeatAction: invalid arguments: "),
        (f"{__name__}:forgets", f"{__name__}:forgets must return a gymnasium.Env, got NoneType"),
        ("numpy:pi", "numpy:pi: pi must be a class or a function, got float"),
    ],
)
def test_wrapper_that_cannot_be_used_is_refused_by_name(wrapper: Json, message: str) -> None:
    with pytest.raises(RlTuiError, match=message) as refusal:
        source(wrapper).make(0, 1)
    assert "env_settings.wrappers: " in str(refusal.value)


@pytest.mark.parametrize("env", [f"{WORLDS}:vectorized", f"{WORLDS}:Misbehaving"])
def test_environment_that_can_have_no_wrappers_refuses_them(env: str) -> None:
    kwargs: dict[str, Json] = {"mode": "SAME_STEP"} if env.endswith("vectorized") else {}
    with pytest.raises(ConfigError, match=r"wrappers: must be left out for .*, which only a gymnasium.Env"):
        source(REPEAT, env=env, **kwargs).make(0, 1)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (["TimeLimit"], 'must be package.module:Class, or a mapping from one to its arguments, got "TimeLimit"'),
        ([{"a:B": {}, "c:D": {}}], "must be package.module:Class, or a mapping from one"),
        ([3], "must be package.module:Class, or a mapping from one"),
        ([{"a:B": [1]}], "must be a mapping of arguments"),
    ],
)
def test_entry_that_names_no_wrapper_is_refused(entries: list[Json], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_wrappers(entries)


def test_arguments_may_be_left_out() -> None:
    [none, empty, given] = read_wrappers(["a:B", {"a:B": None}, {"a:B": {"c": 1}}])
    assert none == empty
    assert given.arguments == {"c": 1}
