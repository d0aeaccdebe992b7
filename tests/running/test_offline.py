"""Runs of a trainer that learns without experience: its updates count, and no agent acts but to evaluate it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rl_tui
from rl_tui.engine.config.behavior import BehaviorConfig
from rl_tui.engine.config.support import find_unsupported, find_unused
from rl_tui.engine.demonstrations.file_writer import DemonstrationWriter, Episode
from rl_tui.engine.demonstrations.recorded import RecordedDemonstrations
from rl_tui.engine.errors import ConfigError, NotSupportedError
from rl_tui.engine.learning.bc.demonstrated import DemonstratedExamples
from rl_tui.engine.learning.bc.settings import HELD_OUT, LOSS
from rl_tui.engine.learning.bc.trainer import BCTrainer
from rl_tui.engine.running.environment_check import check
from rl_tui.engine.running.evaluation.saved_policy import EvaluationRequest, SavedRun
from rl_tui.engine.session.messages import (
    BehaviorStarted,
    BehaviorStateChanged,
    CheckpointSaved,
    EpisodesFinished,
    MetricsReported,
    Pause,
    ProgressReported,
    Resume,
    RunStateChanged,
    SaveCheckpoint,
    Stop,
    TimeSplit,
    WarningRaised,
)
from rl_tui.engine.specs import TERMINATED, ActionSpec, BehaviorSpec, ObservationSpec
from rl_tui.engine.storage.checkpoints import CheckpointStore
from rl_tui.engine.storage.run_summary import summarize
from tests.running.runs import behavior, configuration, ending, equal, live, run_to_end, tensors_of

OFFLINE: dict[str, Any] = {
    "trainer_type": "bc",
    "hyperparameters": {"demo_path": "a.demo", "batch_size": 32, "samples_per_update": 64, "learning_rate": 1e-2},
    "max_steps": 640,
}


@pytest.fixture(autouse=True)
def demonstrations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are some in the working folder."""
    monkeypatch.chdir(tmp_path)
    write("a.demo", num_choices=3)


def write(file: str, num_choices: int, is_noisy: bool = False) -> None:
    """Demonstrations of going to the side that is shown, by the first choice or the last; noisy: by any."""
    random = np.random.default_rng(3)
    seen, none, earned = (ObservationSpec("side", (1,)),), np.zeros((20, 0), np.float32), np.ones(20, np.float32)
    with DemonstrationWriter(Path(file), BehaviorSpec("A", seen, ActionSpec(0, (num_choices,))), "sides") as writer:
        for _ in range(10):
            sides = random.choice([-1.0, 1.0], (21, 1)).astype(np.float32)
            chosen = (num_choices - 1) * (sides[:-1] > 0).astype(np.int64)
            if is_noisy:
                sides = random.standard_normal((21, 1)).astype(np.float32)
                chosen = random.integers(0, num_choices, (20, 1))
            columns = {"observations": (sides,), "continuous": none, "discrete": chosen, "rewards": earned}
            writer.write(Episode(**columns, ending=TERMINATED))


def offline(folder: Path, env: str | None = "toy:one-step", changes: Any = None, **settings: Any) -> Any:
    return configuration(folder, {"A": behavior(**OFFLINE | settings)}, env=env, **(changes or {}))


def test_its_updates_are_the_steps_and_no_agent_acts(tmp_path: Path) -> None:
    run = run_to_end(offline(tmp_path, max_steps=6400))
    assert run.launch.exit_code == 0
    assert ending(run).state == "finished"
    (started,) = run.of(BehaviorStarted)
    assert (started.step, started.max_steps) == (0, 6400)
    last = run.of(ProgressReported)[-1]
    assert (last.step, last.num_learned, last.num_updates) == (6400, 6400, 100)
    assert not run.of(EpisodesFinished)
    split = run.of(TimeSplit)[-1]
    assert split.environment_seconds == 0
    assert split.update_seconds > 0
    summaries = [event.metrics for event in run.of(MetricsReported) if LOSS in event.metrics]
    assert summaries[-1][LOSS] < 0.5 * summaries[0][LOSS]
    assert HELD_OUT in summaries[-1]


def test_the_last_update_counts_up_to_max_steps(tmp_path: Path) -> None:
    run = run_to_end(offline(tmp_path, max_steps=200))
    assert [event.step for event in run.of(ProgressReported)][-1] == 200
    assert run.of(ProgressReported)[-1].num_updates == 4


def test_no_warning_says_that_no_episode_ends(tmp_path: Path) -> None:
    larger = {**OFFLINE["hyperparameters"], "samples_per_update": 3200}
    run = run_to_end(offline(tmp_path, hyperparameters=larger, max_steps=64_000))
    assert run.of(ProgressReported)[-1].step == 64_000
    assert run.of(BehaviorStarted)[0].learns_offline
    assert run.of(WarningRaised) == []


def test_it_is_evaluated_in_an_environment_of_its_own(tmp_path: Path) -> None:
    evaluation = {"interval": 3200, "episodes": 40}
    run = run_to_end(offline(tmp_path, evaluation=evaluation, max_steps=6400))
    tag = "Evaluation/Cumulative Reward"
    found = [event.metrics[tag] for event in run.of(MetricsReported) if tag in event.metrics]
    assert found[-1] == 1.0
    assert not run.of(EpisodesFinished)


def test_the_best_checkpoint_is_by_what_is_held_out_where_nothing_is_evaluated(tmp_path: Path) -> None:
    """Chance cannot be learned but by heart, which makes what is held out worse."""
    write("a.demo", num_choices=3, is_noisy=True)
    hyper = {**OFFLINE["hyperparameters"], "validation": 0.5, "learning_rate_schedule": "constant"}
    network = {"hidden_units": 64, "num_layers": 2}
    run = run_to_end(
        offline(
            tmp_path, hyperparameters=hyper, network_settings=network, max_steps=64 * 100, checkpoint_interval=64 * 4,
            keep_checkpoints=3,
        )
    )  # fmt: skip
    saved = run.of(CheckpointSaved)
    losses = [event.held_out_loss for event in saved]
    lowest = min(range(len(saved)), key=losses.__getitem__)
    assert all(event.mean_return is None for event in saved)
    assert lowest < len(saved) - 1, "it got worse again"
    assert [event.step for event in saved if event.is_best][-1] == saved[lowest].step
    assert Path(saved[lowest].path).exists(), "it is kept, unlike others of its age"
    store = CheckpointStore(run.folder / "A" / "checkpoints", "A", 0)
    best = store.best()
    assert best is not None
    assert (best.step, best.held_out_loss) == (saved[lowest].step, losses[lowest])
    listed = summarize(run.folder)
    assert listed is not None
    assert listed.behaviors[0].best_loss == losses[lowest]
    assert len(store.list()) <= 4


def test_a_killed_run_continues_from_its_checkpoint_and_ends_the_same(tmp_path: Path) -> None:
    whole = run_to_end(offline(tmp_path / "whole", max_steps=64 * 400))
    settings = {"max_steps": 64 * 400}
    with live(offline(tmp_path, **settings)) as run:
        run.wait_for(ProgressReported, lambda event: event.step > 64)
        assert run.send(Pause()).ok
        assert run.send(SaveCheckpoint()).ok
        assert run.send(Resume()).ok
        assert run.send(Stop("now")).ok  # which ends the update that it is in
        run.wait()
    assert ending(run).state == "stopped"
    resumed = run_to_end(offline(tmp_path, changes={"checkpoint_settings": {"resume": True}}, **settings))
    (started,) = resumed.of(BehaviorStarted)
    assert 64 < started.step < settings["max_steps"]
    ends = [each.of(CheckpointSaved)[-1] for each in (whole, resumed)]
    assert [end.step for end in ends] == [settings["max_steps"]] * 2
    assert equal(*(tensors_of(Path(end.path)) for end in ends))


def test_it_never_has_a_thread_of_its_own(tmp_path: Path) -> None:
    run = run_to_end(offline(tmp_path, threaded=True))
    assert run.launch.exit_code == 0
    assert run.of(ProgressReported)[-1].step == 640
    assert not run.of(BehaviorStarted)[0].threaded


def test_what_fails_in_an_update_ends_it_and_keeps_what_was_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn = BCTrainer.update

    def fails(self: BCTrainer, step: int, *rest: Any) -> Any:
        if self.num_updates == 3:
            assert isinstance(self._examples, DemonstratedExamples)
            shown = self._examples._demonstrations
            assert isinstance(shown, RecordedDemonstrations)
            read = shown.transitions
            wrong = (np.full((32, 1), np.nan, np.float32),)
            monkeypatch.setattr(shown, "transitions", lambda rows, **_: replace(read(rows), observations=wrong))
        return learn(self, step, *rest)

    monkeypatch.setattr(BCTrainer, "update", fails)
    run = run_to_end(offline(tmp_path))
    assert run.launch.exit_code == 5
    states = [event for event in run.of(BehaviorStateChanged) if event.state == "failed"]
    assert "cloning is not finite at step 256" in states[0].reason


def test_it_cannot_share_an_environment_with_one_that_needs_experience(tmp_path: Path) -> None:
    write("a.demo", num_choices=2)
    behaviors = {"Left": behavior(**OFFLINE), "Right": behavior()}
    run = run_to_end(configuration(tmp_path, behaviors, env="tests.running.environments:Pair"))
    assert run.launch.exit_code == 2
    assert "learns without experience" in run.of(RunStateChanged)[-1].reason


def test_a_program_makes_its_updates_with_run(tmp_path: Path) -> None:
    with rl_tui.Learner(
        BehaviorConfig.model_validate(behavior(**OFFLINE)), "toy:one-step", tmp_path / "run", behavior="A", seed=1
    ) as learner:
        losses = learner.run(3)
        assert (learner.step, learner.num_updates) == (192, 3)
        assert LOSS in losses
        with pytest.raises(NotSupportedError, match=r"A learns without experience: use run\(\)"):
            learner.learn(learner.collect())
        learner.run(100)
        assert learner.step == 640


def test_it_needs_no_environment(tmp_path: Path) -> None:
    """It does not wait for the Unity Editor, and what needs agents is named."""
    evaluation = {"interval": 320, "episodes": 40}
    config = offline(tmp_path, env=None, evaluation=evaluation)
    assert config.env_settings.environment == {"A": "demonstrations:a.demo"}
    assert not find_unsupported(config)
    (line,) = find_unused(config)
    assert "behaviors.A.evaluation (there is no environment to evaluate in: set env)" in line
    run = run_to_end(config)
    assert run.launch.exit_code == 0
    assert run.of(ProgressReported)[-1].step == 640
    assert run.of(BehaviorStarted)[0].num_agents == 0


def test_a_run_without_an_environment_cannot_be_played(tmp_path: Path) -> None:
    run = run_to_end(offline(tmp_path, env=None))
    with pytest.raises(ConfigError, match=r"run: it has learned from demonstrations alone, and has no environment"):
        SavedRun(run.folder).play(EvaluationRequest(episodes=1, seed=1, ways=("greedy",)))


def test_demonstrations_in_the_place_of_an_environment_may_be_named(tmp_path: Path) -> None:
    config = offline(tmp_path, env="demonstrations:a.demo", evaluation={"interval": 320})
    (line,) = find_unused(config)
    assert "behaviors.A.evaluation (there is no environment to evaluate in: set env)" in line
    assert run_to_end(config).launch.exit_code == 0


def test_demonstrations_have_no_agents_to_try_out() -> None:
    with pytest.raises(ConfigError, match=r"demonstrations:a.demo: has no agents to try out"):
        list(check("demonstrations:a.demo", {}, 1, 10, 1))
