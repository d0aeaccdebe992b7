"""An environment is checked before training: its spaces, broken promises, likely problems."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from rl_tui.engine.config.wrappers import read_wrappers
from rl_tui.engine.errors import ConfigError, EnvironmentFailure, NotSupportedError
from rl_tui.engine.running.environment_check import Finding, check
from rl_tui.tui.cli import main
from tests.sampling.worlds import Counting, Recording

HERE = __name__
WAIT_OVER = threading.Event()


def found(env: str, num_steps: int = 30, **kwargs: Any) -> list[Finding]:
    return list(check(env, kwargs, 2, num_steps, seed=1))


def warnings_of(env: str, num_steps: int = 30, **kwargs: Any) -> list[str]:
    return [finding.text for finding in found(env, num_steps, **kwargs) if finding.kind == "warning"]


class Unseeded(gymnasium.Env[Any, Any]):
    """Shows chance that no seed governs; pays nothing; does not leave its space. Episodes have 5 steps."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2)
    _random = np.random.default_rng()
    _steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self._steps = 0
        return self._random.uniform(-1, 1, 2).astype(np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        return self._random.uniform(-1, 1, 2).astype(np.float32), 0.0, False, self._steps == 5, {}


class Outside(Counting):
    """Counts steps, which its space says it does not."""

    def __init__(self) -> None:
        super().__init__(length=5)
        self.observation_space = gymnasium.spaces.Box(-1, 1, (2,))

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        self._episode = -1
        return super().reset(**options)


class Huge(Recording):
    """Sees thousands, for ever, which its space allows."""

    def __init__(self) -> None:
        super().__init__(gymnasium.spaces.Box(-5000, 5000, (3,)))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.observation_space.seed(seed)
        return super().reset(seed=seed)


class Waiting(Counting):
    """Never returns from the method that `where` names."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self._where = where

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        self._wait_in("reset")
        return super().reset(**options)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._wait_in("step")
        return super().step(action)

    def close(self) -> None:
        self._wait_in("close")

    def _wait_in(self, where: str) -> None:
        if self._where == where:
            WAIT_OVER.wait()


class OnlyHere(Counting):
    """Raises in any other process."""

    def __init__(self, trainer: int) -> None:
        if os.getpid() != trainer:
            raise RuntimeError("elsewhere")
        super().__init__()


class Lying(Counting):
    """Shows three numbers where it promised two."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.zeros(3), *super().step(action)[1:]


def test_environment_that_keeps_its_promises_has_no_warning() -> None:
    findings = found("gymnasium:CartPole-v1")
    assert [finding.text for finding in findings if finding.kind == "about"] == [
        "Agent: 2 agents in 2 copies",
        "  observation 'observation': a vector of 4, float32",
        "  actions: a choice of 2",
    ]
    reported = [finding.text for finding in findings if finding.kind == "ok"]
    assert re.fullmatch(r"6\d random steps: shapes, types and values match the spaces", reported[1])
    assert "the same seed and actions give the same episodes" in reported
    assert "a worker process (num_workers) can step it" in reported
    assert not [finding for finding in findings if finding.kind == "warning"]


def test_every_behavior_is_described() -> None:
    about = [finding.text for finding in found("tests.sampling.worlds:TwoKinds", 5) if finding.kind == "about"]
    assert about[0] == "Crowd: 2 agents in 2 copies"
    assert about[3:] == [
        "Leader: 2 agents in 2 copies",
        "  observation 'sum': a vector of 1, float32",
        "  observation 'map': a set of up to 2 entities of 2 features, float32",
        "  actions: 2 continuous, a choice of 3, a choice of 2",
    ]


def test_behaviors_that_appear_and_teams_are_described() -> None:
    findings = found("tests.running.growing:Growing", 60, at=20)
    about = [finding.text for finding in findings if finding.kind == "about"]
    assert about[0] == "Left: 2 agents in 2 copies"
    assert about[3:] == [
        "Right: 4 agents in 2 copies, teams 0, 1, appeared after 20 steps",
        "  observation 'time': a vector of 1, float32",
        "  actions: a choice of 2",
    ]
    assert "the same seed and actions give the same episodes" in [finding.text for finding in findings]


def test_example_of_the_page_is_ready_for_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs/environments.md").read_text()
    [code] = re.findall(r"^```python pasture.py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "pasture.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    findings = found("pasture:Pasture", 300)
    assert [finding.text for finding in findings if finding.kind in ("warning", "failed")] == []
    about = [finding.text for finding in findings if finding.kind == "about"]
    assert [about[0], about[3]] == [
        "Ant: 12 agents in 2 copies, teams 0, 1",
        "Bird: 2 agents in 2 copies, appeared after 60 steps",
    ]


def test_agents_that_leave_without_the_end_of_an_episode_are_counted() -> None:
    departed, endless = warnings_of("tests.running.growing:Vanishing", num_steps=300)
    assert re.fullmatch(r"Left: \d{2,} agents left without a terminal step\. Their .*", departed)
    assert endless.startswith("no episode ended")


def test_environment_that_fails_only_in_a_worker_is_not_said_to_be_ready(capfd: pytest.CaptureFixture[str]) -> None:
    env = [f"{HERE}:OnlyHere", "--env-kwargs", f'{{"trainer": {os.getpid()}}}']
    assert main(["check-env", *env, "--steps", "5"]) == 0
    said = capfd.readouterr().out
    assert "failed   in a worker process (num_workers) it fails: " in said
    assert f"{HERE}:OnlyHere can be trained in with num_workers: 0 only" in said


def test_environment_in_which_no_behavior_appears_is_refused() -> None:
    with pytest.raises(EnvironmentFailure, match="no behavior appeared in 60 steps: there is nothing to train"):
        found("tests.running.growing:Empty", num_steps=60, at=10**9)


def test_seed_without_effect_and_rewards_without_difference_are_warned_of() -> None:
    seed, reward = warnings_of(f"{HERE}:Unseeded")[::-1]
    assert seed.startswith("the same seed and actions gave something else at the reset")
    assert reward.startswith("every reward was 0, ")


def test_observation_beyond_its_space_is_warned_of() -> None:
    [warning] = warnings_of(f"{HERE}:Outside")
    assert warning == "observation 'observation' had values from 0 to 4, outside its space; values are not clipped"


def test_large_observations_and_episodes_without_an_end_are_warned_of() -> None:
    large, endless, reward = warnings_of(f"{HERE}:Huge")
    assert "network_settings.normalize: true" in large
    assert endless.startswith("no episode ended in 60 random steps.")
    assert reward.startswith("every reward was 0, ")


@pytest.mark.parametrize(("num_envs", "env"), [(1, "gymnasium:Pendulum-v1"), (2, "gymnasium:Acrobot-v1")])
def test_check_that_is_shorter_than_an_episode_may_be_warns_of_no_endless_ones(num_envs: int, env: str) -> None:
    limit = {"max_episode_steps": 30}  # Gymnasium gives it to what it makes, and to the vectorized form
    findings = list(check(env, limit, num_envs, num_steps=20, seed=1))
    assert not [finding for finding in findings if "add a time limit" in finding.text]
    words = f"no episode ended in {20 * num_envs} random steps: one may last 30 steps of an agent."
    assert Finding("ok", f"{words} --steps 31 plays a whole one") in findings
    longer = list(check(env, limit, num_envs, num_steps=31, seed=1))
    ended = next(finding.text for finding in longer if "mean length 30.0" in finding.text)
    assert ended.startswith("1 episode: " if num_envs == 1 else "2 episodes: ")


def test_check_knows_the_limit_of_a_wrapper_around_an_environment_of_ones_own() -> None:
    wrappers = read_wrappers([{"gymnasium.wrappers:TimeLimit": {"max_episode_steps": 30}}])
    findings = check(f"{HERE}:Huge", {}, 1, num_steps=20, seed=1, wrappers=wrappers)
    assert "one may last 30 steps of an agent" in "".join(finding.text for finding in findings)


def test_advice_about_endless_episodes_is_for_the_kind_of_environment() -> None:
    endless = warnings_of("pettingzoo:classic/go_v5", num_steps=5)[0]
    assert endless.endswith("such as max_cycles in env_kwargs, which many of PettingZoo's have")


@pytest.mark.parametrize(
    ("env", "error", "words"),
    [
        (f"{HERE}:Lying", EnvironmentFailure, r"must have the shape \(2,\) of its space, got \(3,\)"),
        ("tests.sampling.worlds:Misbehaving", EnvironmentFailure, "at tests/sampling/worlds.py"),
        (f"{HERE}:Nothing", ConfigError, "has no attribute 'Nothing'"),
        (f"{HERE}:make_sequence", NotSupportedError, "Sequence spaces are not supported"),
    ],
)
def test_what_cannot_be_trained_in_raises(env: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        found(env, **({"fault": "raises"} if "Misbehaving" in env else {}))


@pytest.mark.parametrize("where", ["step", "reset", "close"])
def test_call_that_does_not_return_ends_the_check_with_its_place(where: str) -> None:
    words = rf"instance 0: {where} has not returned for 0.2 s, at tests/running/test_environment_check.py:\d+ in"
    WAIT_OVER.clear()
    try:
        with pytest.raises(EnvironmentFailure, match=words) as raised:
            list(check(f"{HERE}:Waiting", {"where": where}, 2, 30, seed=1, timeout=0.2))
        assert "WAIT_OVER.wait()" in raised.value.detail
    finally:
        WAIT_OVER.set()


def make_sequence() -> gymnasium.Env[Any, Any]:
    return Recording(gymnasium.spaces.Sequence(gymnasium.spaces.Box(-1, 1, (2,))))
