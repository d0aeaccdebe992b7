"""Measuring a policy apart from its training: which episodes count, and that training does not notice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rl_tui.engine.config.behavior import BehaviorConfig, EvaluationSettings
from rl_tui.engine.learning.policies import make_policy
from rl_tui.engine.learning.ppo.trainer import PPOTrainer
from rl_tui.engine.running.evaluation import evaluator as evaluator_module
from rl_tui.engine.running.evaluation.episodes import Scores, play
from rl_tui.engine.running.evaluation.evaluator import Evaluator
from rl_tui.engine.running.watching.policy import LatestPolicy, PolicySnapshot
from rl_tui.engine.sampling.environments.base import Environment
from rl_tui.engine.sampling.environments.factory import EnvironmentSource, make_environments
from rl_tui.engine.sampling.pools.process import ProcessPool
from rl_tui.engine.sampling.pools.quota import RestartQuota
from rl_tui.engine.sampling.pools.reports import Restarting
from rl_tui.engine.sampling.pools.serial import SerialPool
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import (
    BehaviorRolledBack,
    BehaviorStateChanged,
    CheckpointSaved,
    EnvironmentFailed,
    EvaluationReported,
    LogEmitted,
    MetricsReported,
    Pause,
    Resume,
    RollBack,
    RunStateChanged,
    SaveCheckpoint,
    SetHyperparameter,
    Stop,
)
from rl_tui.engine.specs import Actions, Choice, DecisionSteps, Float32, Policy, State, Weights
from rl_tui.engine.storage.checkpoint_format import read
from tests.running import environments
from tests.running.environments import Pair, Uneven
from tests.running.runs import (
    DEADLINE_SECONDS,
    ENDLESS,
    THREADED,
    behavior,
    configuration,
    ending,
    equal,
    live,
    run_to_end,
    tensors_of,
)

PAIR = "tests.running.environments:Pair"
MORTAL = "tests.running.environments:MortalUneven"
WATCHED = "tests.running.environments:Watched"
EVALUATION: dict[str, Any] = {"interval": 200, "episodes": 6}
SLOW = "6 episodes of evaluation have taken 0.05 s so far; training waits for their end"


class Counting:
    """Remembers how many steps of its episode an agent has done, which is what it sees, or fails."""

    version = 0
    memory_size = 1

    def act(self, decisions: DecisionSteps, memories: Float32 | None = None) -> Choice:
        assert memories is not None
        np.testing.assert_array_equal(memories, decisions.observations[0])
        count = len(memories)
        actions = Actions(np.zeros((count, 0), np.float32), np.zeros((count, 1), np.int64))
        return Choice(actions, actions.continuous, np.zeros((count, 1), np.float32), memories + 1)

    def load(self, weights: Weights) -> None:
        raise AssertionError("it has none")

    def state(self) -> State:
        return State()

    def load_state(self, state: State) -> None:
        pass


def played(num_episodes: int, *environments: Environment) -> Scores | None:
    pool = SerialPool("test", lambda first, count: environments, len(environments))
    pool.start()
    return play(pool, lambda spec: Counting(), "Walker", num_episodes, 1, lambda: True)


def lengths(scores: Scores | None) -> list[int]:
    assert scores is not None
    assert scores.returns.tolist() == scores.lengths.tolist()  # one a step
    return sorted(scores.lengths.tolist())


def test_every_agent_has_its_share_however_short_its_episodes() -> None:
    assert lengths(played(6, Uneven((1, 3, 9)))) == [1, 1, 3, 3, 9, 9]
    assert lengths(played(8, Uneven((1, 9)), Uneven((2, 5)))) == [1, 1, 2, 2, 5, 5, 9, 9]


def test_so_many_episodes_count_as_were_asked_for() -> None:
    assert lengths(played(2, Uneven((1, 3, 9)))) == [1, 3]
    assert lengths(played(7, Uneven((1, 3, 9)))) == [1, 1, 1, 3, 3, 9, 9]


def test_agents_that_come_and_go_are_counted_by_when_they_begin() -> None:
    assert lengths(played(6, Uneven((1, 9), is_reborn=True))) == [1, 1, 1, 1, 1, 9]


@pytest.mark.parametrize(("num_episodes", "expected"), [(1, [6]), (7, [1, 1, 2, 2, 6, 6, 6])])
def test_episodes_that_are_lost_with_their_worker_are_played_again(
    tmp_path: Path, num_episodes: int, expected: list[int]
) -> None:
    source = EnvironmentSource(MORTAL, "Walker", {"folder": str(tmp_path), "lengths": [6, 2, 1]})
    pool = ProcessPool(source, 1, 1, make_quota=partial(RestartQuota, 1, 1, 60.0))
    pool.start()
    try:
        deadline = time.monotonic() + DEADLINE_SECONDS
        scores = play(pool, lambda spec: Counting(), "Walker", num_episodes, 1, lambda: time.monotonic() < deadline)
        [restarting, _] = pool.pop_reports()
    finally:
        pool.close()
    assert lengths(scores) == expected
    assert isinstance(restarting, Restarting)


def test_evaluation_ends_at_once_when_it_may_not_go_on() -> None:
    pool = SerialPool("test", lambda first, count: [Uneven((50,))], 1)
    pool.start()
    answers = iter([True, True, False])
    assert play(pool, lambda spec: Counting(), "Walker", 1, 1, lambda: next(answers)) is None


def test_same_weights_get_the_same_scores_whenever_they_are_evaluated() -> None:
    config = BehaviorConfig.model_validate(behavior())
    environments = make_environments("toy:line", "Walker", range(3), {})
    spec = environments[0].specs["Walker"]
    weights = PPOTrainer(spec, config, 1, torch.device("cpu")).weights()
    evaluator = Evaluator(
        EvaluationSettings(interval=10, episodes=9, deterministic=False),
        "Walker",
        lambda: SerialPool("test", lambda first, count: environments, 3),
        make_policy(spec, config.network_settings, is_squashed=False, seed=1),
        seed=1,
        bus=EventBus(),
        trained={},
    )
    first, second = (evaluator.evaluate(10, replace(weights, version=version), lambda: True) for version in (1, 2))
    assert first == second != {}
    assert [evaluator.can_evaluate(version) for version in (2, 3)] == [False, True]
    evaluator.close()


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """The next two environments made are for training and evaluation; calls that hang end with the test."""
    environments.RELEASE.clear()
    environments.Watched.num_made = 0
    environments.Watched.evaluating.clear()
    yield
    environments.RELEASE.set()


@pytest.mark.parametrize("env", ["toy:line", "gymnasium:CartPole-v1"])
def test_training_is_the_same_with_evaluation_and_without(tmp_path: Path, env: str) -> None:
    results = []
    for evaluation in (None, EVALUATION | {"deterministic": False}):
        walker = behavior(evaluation=evaluation, network_settings__normalize=True)
        config = configuration(tmp_path, {"Walker": walker}, env, checkpoint_settings={"run_id": f"run-{len(results)}"})
        run = run_to_end(config)
        assert run.launch.exit_code == 0
        assert bool(run.of(EvaluationReported)) == (evaluation is not None)
        state, _ = read(Path(run.of(CheckpointSaved)[-1].path))
        tensors = {name: tensor.tobytes() for name, tensor in state.tensors.items()}
        returns = [(event.step, event.mean_return, event.returns) for event in run.of(MetricsReported)]
        results.append((tensors, state.values, returns))
    assert results[0] == results[1]


def test_policy_is_measured_at_every_interval_and_at_the_end(tmp_path: Path) -> None:
    walker = behavior(evaluation=EVALUATION, max_steps=930, checkpoint_interval=100, keep_checkpoints=20)
    run = run_to_end(configuration(tmp_path, {"Walker": walker}))
    reported = run.of(EvaluationReported)
    assert [event.step // 200 for event in reported] == [1, 2, 3, 4, 4]
    assert reported[-1].step == run.of(CheckpointSaved)[-1].step >= 930
    assert all(event.episodes == 6 and event.mean_length > 1 and event.seconds > 0 for event in reported)
    for event in reported:
        following = run.events[run.events.index(event) :]
        summary = next(other for other in following if isinstance(other, MetricsReported))
        assert summary.metrics["Evaluation/Cumulative Reward"] == event.mean_return
        assert summary.metrics["Evaluation/Episode Length"] == event.mean_length
    newest = {}
    for saved in run.of(CheckpointSaved):
        newest[saved.step] = saved.mean_return
    assert newest == {step: last_before(reported, step) for step in newest}, "checkpoints are ranked by the newest one"
    assert None in newest.values()


def last_before(reported: list[EvaluationReported], step: int) -> float | None:
    return next((event.mean_return for event in reversed(reported) if event.step <= step), None)


def test_resumed_run_counts_on_from_its_step(tmp_path: Path) -> None:
    run = run_to_end(configuration(tmp_path, {"Walker": behavior(evaluation=EVALUATION, max_steps=384)}))
    assert [event.step // 200 for event in run.of(EvaluationReported)] == [1, 1]
    longer = behavior(evaluation=EVALUATION, max_steps=600)
    run = run_to_end(configuration(tmp_path, {"Walker": longer}, checkpoint_settings={"resume": True}))
    assert 400 <= run.of(EvaluationReported)[0].step < 400 + 128


@pytest.mark.parametrize("threaded", THREADED)
def test_run_answers_while_it_evaluates_and_a_stop_ends_that(
    tmp_path: Path, threaded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluator_module, "PATIENCE_SECONDS", 0.05)
    walker = behavior(evaluation=EVALUATION, max_steps=ENDLESS, threaded=threaded)
    config = configuration(
        tmp_path, {"Walker": walker}, WATCHED, env_settings={"num_envs": 1, "env_kwargs": {"fault": "never ends"}}
    )
    with live(config) as run:
        assert environments.Watched.evaluating.wait(DEADLINE_SECONDS)
        run.wait_for(LogEmitted, lambda event: event.message == SLOW)
        assert run.send(Pause()).ok
        run.wait_for(BehaviorStateChanged, lambda event: event.state == "paused")
        assert run.send(SaveCheckpoint()).ok
        assert run.send(SetHyperparameter("Walker", "learning_rate", 1e-4)).ok
        assert run.send(Resume()).ok
        (saved,) = run.of(CheckpointSaved)
        assert saved.mean_return is None, "nothing was evaluated to its end"
        environments.Watched.evaluating.clear()
        assert run.send(RollBack("Walker", saved.path)).ok
        assert run.of(BehaviorRolledBack)[0].step == saved.step
        assert environments.Watched.evaluating.wait(DEADLINE_SECONDS), "training went on, to the next evaluation"
        assert run.send(Stop()).ok
        assert run.wait() == 0
    assert not run.of(EvaluationReported)
    assert run.of(CheckpointSaved)[-1].reason == "interrupted"


def test_failed_environment_ends_evaluation_and_training_goes_on(tmp_path: Path) -> None:
    config = configuration(
        tmp_path,
        {"Walker": behavior(evaluation=EVALUATION)},
        WATCHED,
        env_settings={"num_envs": 1, "env_kwargs": {"fault": "raises"}},
    )
    run = run_to_end(config)
    assert run.launch.exit_code == 0
    (warning,) = [event for event in run.of(LogEmitted) if event.level == "warning"]
    assert warning.source == "Walker"
    assert "evaluation has ended" in warning.message
    assert "step raised ValueError: the wheels came off" in warning.message
    assert not run.of(EvaluationReported)
    assert run.of(CheckpointSaved)[-1].mean_return is not None, "training's own episodes rank checkpoints then"


@pytest.mark.parametrize("threaded", THREADED)
def test_evaluation_that_hangs_ends_its_behavior_with_what_it_learned(tmp_path: Path, threaded: bool) -> None:
    config = configuration(
        tmp_path,
        {"Walker": behavior(evaluation=EVALUATION, max_steps=ENDLESS, threaded=threaded)},
        WATCHED,
        env_settings={"num_envs": 1, "timeout_wait": 1, "env_kwargs": {"fault": "hangs"}},
    )
    with live(config) as run:
        assert run.wait() == 3
        assert f"{WATCHED}, instance 0: step has not returned" in run.of(EnvironmentFailed)[0].reason
        (saved,) = run.of(CheckpointSaved)
        assert saved.reason == "error"
        assert 200 <= saved.step < 500
        seen = len(run.mail)
        environments.RELEASE.set()  # the step returns after all: nothing may happen any more
    assert not [event for event in run.events[seen:] if not isinstance(event, EvaluationReported)]
    assert ending(run).state == "failed"


@pytest.mark.parametrize("threaded", THREADED)
def test_behaviors_that_share_an_environment_are_evaluated(threaded: bool, tmp_path: Path) -> None:
    results = []
    for is_evaluated in (False, True):
        behaviors = {
            name: behavior(evaluation=dict(EVALUATION) if is_evaluated else None, threaded=threaded)
            for name in ("Left", "Right")
        }
        place = {"run_id": f"run-{len(results)}"}
        run = run_to_end(configuration(tmp_path, behaviors, PAIR, checkpoint_settings=place))
        assert run.launch.exit_code == 0, run.recent_events()
        results.append([tensors_of(Path(event.path)) for event in run.of(CheckpointSaved)])
    assert {event.behavior for event in run.of(EvaluationReported)} == {"Left", "Right"}
    if not threaded:
        assert all(equal(*pair) for pair in zip(*results, strict=True)), "training does not notice"


def test_other_behaviors_act_with_their_newest_policies() -> None:
    config = BehaviorConfig.model_validate(behavior())
    pair = Pair()
    trainer = PPOTrainer(pair.specs["Right"], config, 1, torch.device("cpu"))
    acted: list[tuple[bool, int]] = []

    class Noted(Counting):
        memory_size = 0

        def act(self, decisions: DecisionSteps, memories: Float32 | None = None) -> Choice:
            return trainer.make_policy(1).act(decisions)

        def load(self, weights: Weights) -> None:
            acted[-1] = acted[-1][0], weights.version

    def make(is_greedy: bool) -> Policy:
        acted.append((is_greedy, -1))
        return Noted()

    latest = LatestPolicy(PolicySnapshot(replace(trainer.weights(), version=7), 64))
    evaluator = Evaluator(
        EvaluationSettings(interval=10, episodes=2),
        "Left",
        lambda: SerialPool("test", lambda first, count: [pair], 1),
        make_policy(pair.specs["Left"], config.network_settings, is_squashed=False, seed=1),
        seed=1,
        bus=EventBus(),
        trained={"Right": (make, latest)},
    )
    assert evaluator.evaluate(10, trainer.weights(), lambda: True)
    latest.snapshot = PolicySnapshot(replace(trainer.weights(), version=9), 128)
    assert evaluator.evaluate(20, replace(trainer.weights(), version=1), lambda: True)
    assert acted == [(True, 7), (True, 9)]
    evaluator.close()


def test_policy_that_only_plays_is_not_evaluated(tmp_path: Path) -> None:
    walker = behavior(evaluation=EVALUATION)
    run_to_end(configuration(tmp_path, {"Walker": walker}))
    flags = {"resume": True, "inference": True}
    with live(configuration(tmp_path, {"Walker": walker}, checkpoint_settings=flags)) as run:
        run.wait_for(RunStateChanged, lambda event: event.state == "training")
        run.wait_for(MetricsReported, lambda event: event.step > 1000)
        assert run.send(Stop()).ok
    assert not run.of(EvaluationReported)
    assert "evaluation: no effect with --inference" in "\n".join(event.message for event in run.of(LogEmitted))
