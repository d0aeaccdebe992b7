"""Evaluations against a fixed opponent: who plays, what is reported, and that training does not notice."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rl_tui.engine.config.behavior import BehaviorConfig, EvaluationSettings
from rl_tui.engine.learning.policies import make_policy
from rl_tui.engine.learning.ppo.trainer import PPOTrainer
from rl_tui.engine.running.evaluation.evaluator import Evaluator
from rl_tui.engine.running.evaluation.match import Match
from rl_tui.engine.running.evaluation.opponents import OldestOpponent
from rl_tui.engine.running.games.rules import Rules
from rl_tui.engine.running.preflight import refusals
from rl_tui.engine.running.watching.policy import LatestPolicy, PolicySnapshot
from rl_tui.engine.sampling.pools.serial import SerialPool
from rl_tui.engine.session.bus import EventBus
from rl_tui.engine.session.messages import CheckpointSaved, EvaluationReported, LogEmitted, MetricsReported
from rl_tui.engine.session.sentences import sentence_of
from rl_tui.engine.specs import BehaviorSpec, Weights
from rl_tui.engine.storage.checkpoint_format import read
from tests.running.games.duel import CHOICES, SEEN, Duel
from tests.running.runs import LiveRun, behavior, configuration, ending, run_to_end

DUEL = "tests.running.games.duel:Duel"
WIN_RATE = "Evaluation/Win Rate"
FIGHTER = BehaviorSpec("Fighter", SEEN, CHOICES, teams=(0, 1))


def duel(
    folder: Path,
    opponent: str | None,
    names: tuple[str, ...] = ("Fighter",),
    kwargs: dict[str, Any] | None = None,
    **changes: Any,
) -> LiveRun:
    """A run that is evaluated against that opponent. It soon learns to choose the largest numbers."""
    evaluation = {"interval": 128, "episodes": 8, "opponent": opponent} | changes.pop("evaluation", {})
    own = behavior(evaluation=evaluation, hyperparameters__learning_rate=0.002, checkpoint_interval=64)
    own |= {"keep_checkpoints": 20} | changes.pop("behavior", {})
    changes["env_settings"] = {"seed": 2, "env_kwargs": kwargs or {}}
    behaviors = {name: copy.deepcopy(own) for name in names}
    return run_to_end(configuration(folder, behaviors, changes.pop("env", DUEL), **changes))


def reported(run: LiveRun) -> list[EvaluationReported]:
    assert run.launch.exit_code == 0, run.recent_events()
    found = run.of(EvaluationReported)
    assert found
    return found


def test_results_against_random_play_are_reported_with_the_returns(tmp_path: Path) -> None:
    run = duel(tmp_path, "random", evaluation={"episodes": 40})
    for event in reported(run):
        assert event.won + event.drawn + event.lost == event.episodes == 40
        assert event.mean_return == pytest.approx((event.won - event.lost) / 40)
        assert event.mean_length == 2
        following = run.events[run.events.index(event) :]
        summary = next(other for other in following if isinstance(other, MetricsReported))
        assert summary.metrics[WIN_RATE] == pytest.approx((event.won + event.drawn / 2) / 40)
        assert summary.metrics["Evaluation/Cumulative Reward"] == event.mean_return
    assert reported(run)[-1].won > 30, "it has learned, and its curve says so"
    text = sentence_of(reported(run)[-1])
    assert text is not None
    assert f": {reported(run)[-1].won} won, " in text.text


def test_without_an_opponent_nothing_is_said_of_games(tmp_path: Path) -> None:
    run = duel(tmp_path, None)
    assert all(event.won == event.drawn == event.lost == 0 for event in reported(run))
    assert not any(WIN_RATE in event.metrics for event in run.of(MetricsReported))
    assert reported(run)[0].mean_return == 0, "all teams share a policy, and their returns add up to nothing"


@pytest.mark.parametrize("episodes", [8, 7, 1])
def test_policy_takes_every_seat_in_turn(tmp_path: Path, episodes: int) -> None:
    run = duel(tmp_path, "random", kwargs={"edge": 100}, evaluation={"episodes": episodes}, behavior={"max_steps": 128})
    for event in reported(run):
        assert {event.won, event.lost} == {episodes // 2, episodes - episodes // 2}


def test_training_is_the_same_with_an_opponent_and_without(tmp_path: Path) -> None:
    results = []
    for opponent in (None, "random", "oldest"):
        run = duel(tmp_path, opponent, checkpoint_settings={"run_id": f"run-{len(results)}"})
        reported(run)
        state, _ = read(Path(run.of(CheckpointSaved)[-1].path))
        returns = [(event.step, event.mean_return) for event in run.of(MetricsReported)]
        results.append(({name: tensor.tobytes() for name, tensor in state.tensors.items()}, state.values, returns))
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("source", ["run", "checkpoint", "file", "id"])
def test_saved_policy_is_the_opponent(tmp_path: Path, source: str) -> None:
    """The first policy of a run takes 0 in this seed, and its last one 2."""
    folders = {"results_dir": str(tmp_path / "results")}
    first = duel(tmp_path / "first", None, checkpoint_settings={"run_id": "first"} | folders)
    assert first.launch.exit_code == 0
    saved = Path(first.of(CheckpointSaved)[0 if source == "checkpoint" else -1].path)
    exported = first.folder / f"Fighter/{saved.name}.onnx"
    named = {"run": first.folder, "checkpoint": saved, "file": exported, "id": "first"}[source]
    run = duel(tmp_path / "second", str(named), checkpoint_settings=folders)
    used = exported if source == "file" else saved
    assert f"the opponent in evaluations is {used}" in [event.message for event in run.of(LogEmitted)]
    last = reported(run)[-1]
    assert (last.won, last.drawn, last.lost) == ((8, 0, 0) if source == "checkpoint" else (0, 8, 0))


def test_oldest_is_what_training_began_with_also_after_a_resume(tmp_path: Path) -> None:
    run = duel(tmp_path, "oldest")
    assert reported(run)[-1].won == 8, "it has learned since"
    resumed = duel(tmp_path, "oldest", behavior={"max_steps": 640}, checkpoint_settings={"resume": True})
    assert [event.won for event in reported(resumed)] == [8] * len(reported(resumed))


def weights_of(seed: int, favorite: int) -> Weights:
    """A policy that prefers a choice."""
    config = BehaviorConfig.model_validate(behavior())
    weights = PPOTrainer(FIGHTER, config, seed, torch.device("cpu")).weights()
    (bias,) = [name for name, array in weights.arrays.items() if array.shape == (3,)]
    preferred = np.where(np.arange(3) == favorite, 100, 0).astype(np.float32)
    return replace(weights, arrays=weights.arrays | {bias: preferred})


def test_oldest_snapshot_plays_once_there_is_one() -> None:
    config = BehaviorConfig.model_validate(behavior())
    snapshots: list[Weights] = []
    newest, initial = weights_of(1, favorite=1), weights_of(2, favorite=0)
    trained = {
        "Fighter": (
            lambda is_greedy: make_policy(FIGHTER, config.network_settings, False, 1, is_greedy),
            LatestPolicy(PolicySnapshot(newest, 0)),
        )
    }

    def oldest(name: str) -> Weights | None:
        assert name == "Fighter"
        return snapshots[0] if snapshots else None

    opponent = OldestOpponent("Fighter", oldest, initial, trained, is_greedy=True)
    evaluator = Evaluator(
        EvaluationSettings(interval=10, episodes=4),
        "Fighter",
        lambda: SerialPool("test", lambda first, count: [Duel()], 1),
        make_policy(FIGHTER, config.network_settings, is_squashed=False, seed=1, is_greedy=True),
        seed=1,
        bus=EventBus(),
        trained=trained,
        match=Match(opponent, Rules.of(None)),
    )
    rates = [evaluator.evaluate(10, newest, lambda: True)[WIN_RATE]]
    for favorite in (1, 2):
        snapshots[:] = [weights_of(3, favorite)]
        rates.append(evaluator.evaluate(10, newest, lambda: True)[WIN_RATE])
    assert rates == [1.0, 0.5, 0.0]
    evaluator.close()


@pytest.mark.parametrize("opponent", ["random", "oldest", "run"])
def test_other_behaviors_of_the_opponent_play_as_it_says(tmp_path: Path, opponent: str) -> None:
    names, kwargs = ("Giant", "Dwarf"), {"teams": ["Giant?team=0", "Dwarf?team=1"]}
    if opponent == "run":
        opponent = str(duel(tmp_path / "first", None, names, kwargs).folder)
    run = duel(tmp_path / "second", opponent, names, kwargs)
    assert {event.behavior for event in reported(run)} == {*names}
    for event in reported(run):
        assert event.won + event.drawn + event.lost == 8


@pytest.mark.parametrize("opponent", ["random", "oldest"])
def test_environment_with_a_single_team_is_refused(tmp_path: Path, opponent: str) -> None:
    run = duel(tmp_path, opponent, ("Walker",), env="toy:line")
    assert run.launch.exit_code == 2
    reason = ending(run).reason
    assert reason.startswith("behaviors.Walker.evaluation.opponent: the environment has only one team, of Walker")
    assert "\n" not in reason


def test_opponent_of_another_game_is_refused_with_what_differs(tmp_path: Path) -> None:
    other = run_to_end(configuration(tmp_path / "first", {"Walker": behavior()}))
    for path in (other.folder, other.folder / "Walker.onnx"):
        run = duel(tmp_path / path.name, str(path))
        assert run.launch.exit_code == 2
        reason = ending(run).reason
        assert reason.startswith("behaviors.Fighter.evaluation.opponent: ")
        assert "observations" in reason
        assert "\n" not in reason


@pytest.mark.parametrize(
    ("opponent", "hint"),
    [("rondom", ". Did you mean random?"), ("nowhere/file.onnx", "an ONNX file."), ("oldest.onnx", "an ONNX file.")],
)
def test_opponent_that_is_not_there_is_named_before_the_start(tmp_path: Path, opponent: str, hint: str) -> None:
    evaluation = {"opponent": opponent}
    [line] = refusals(configuration(tmp_path, {"Fighter": behavior(evaluation=evaluation)}, DUEL))
    assert line.startswith(f"behaviors.Fighter.evaluation.opponent: {opponent}: there is no such file or folder")
    assert hint in line
