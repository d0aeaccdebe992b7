"""Whole runs in which teams play against earlier policies: what is learned, what is rated, what a resume restores."""

from __future__ import annotations

import copy
import os
import signal
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rl_tui.engine.running import learner
from rl_tui.engine.running.collection import Collection
from rl_tui.engine.running.published_weights import PublishedWeights
from rl_tui.engine.running.self_play import matchmaking
from rl_tui.engine.running.self_play.matchmaking import Matchmaking
from rl_tui.engine.session.messages import (
    BehaviorStarted,
    CheckpointSaved,
    EnvironmentRestarted,
    LeagueReported,
    LessonChanged,
    LogEmitted,
    MetricsReported,
    ProgressReported,
    RollBack,
    Stop,
    WorkersSampled,
)
from rl_tui.engine.specs import CUT, Actions, DecisionSteps, Ending, State, Trajectories, Weights
from rl_tui.engine.storage.checkpoint_format import read
from tests.running.runs import LiveRun, behavior, configuration, live, run_to_end

SELF_PLAY = {"save_steps": 300, "team_change": 700, "swap_steps": 150, "window": 3}
MAX_STEPS = 3000


class Recorder:
    """What learners were given, by behavior, their trainers, and the weights of each version of their policies."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.blocks: dict[str, list[Trajectories]] = defaultdict(list)
        self.trainers: dict[str, Any] = {}
        self.begun: list[dict[str, State]] = []  # the leagues at the beginning of each collection
        self._published: dict[int, dict[int, Weights]] = defaultdict(dict)  # by the publisher, and by version
        self._publisher: dict[str, int] = {}
        original_add, original_publish, original_begin = (
            learner.Learner.add,
            PublishedWeights.publish,
            Matchmaking.begin,
        )

        def add(own: learner.Learner, block: Trajectories, state: State) -> bool:
            self.blocks[own.behavior].append(block)
            self.trainers[own.behavior] = own.trainer
            self._publisher[own.behavior] = id(own.weights)
            self._published[id(own.weights)].setdefault(own.weights.version, own.weights.latest.snapshot.weights)
            return original_add(own, block, state)

        def publish(own: PublishedWeights, step: int) -> None:
            original_publish(own, step)
            self._published[id(own)][own.version] = own.latest.snapshot.weights

        def begin(own: Matchmaking, running: Collection) -> None:
            original_begin(own, running)
            leagues = {name: each.league for name, each in running.behaviors.items()}
            self.begun.append({name: league.state() for name, league in leagues.items() if league is not None})

        monkeypatch.setattr(learner.Learner, "add", add)
        monkeypatch.setattr(PublishedWeights, "publish", publish)
        monkeypatch.setattr(Matchmaking, "begin", begin)

    def versions(self, name: str) -> dict[int, Weights]:
        """Of the policy of a behavior."""
        return self._published[self._publisher[name]]


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    return Recorder(monkeypatch)


def duels(folder: Path, names: tuple[str, ...] = ("Duelist",), **changes: Any) -> Any:
    """The configuration of a run. changes: of the behaviors with their names, of sections, or `env_args`."""
    env_settings = {"num_envs": 2, "env": "tests.running.self_play.duels:Duels"}
    env_settings |= {"env_kwargs": changes.pop("env_kwargs")} if "env_kwargs" in changes else {}
    env_settings |= changes.pop("env_settings", {})
    sections = {
        name: changes.pop(name) for name in ("checkpoint_settings", "environment_parameters") if name in changes
    }
    defaults = {
        "self_play": SELF_PLAY,
        "max_steps": MAX_STEPS,
        "summary_freq": 500,
        "hyperparameters": {"batch_size": 64, "buffer_size": 128, "num_epoch": 2, "learning_rate": 0.01},
    }
    settings = behavior(**{**defaults, **changes})
    return configuration(
        folder, {name: copy.deepcopy(settings) for name in names}, env_settings=env_settings, **sections
    )


def learned_segments(block: Trajectories) -> np.ndarray[Any, Any]:
    """bool[P]."""
    return np.ones(block.num_segments, np.bool_) if block.is_learned is None else block.is_learned


def check_episodes(blocks: list[Trajectories]) -> int:
    """No episode has two policies; returns how many the policy that learns has played to their ends."""
    num_ended, by_episode = 0, defaultdict(set)
    for block in blocks:
        learned = learned_segments(block)
        begins = np.cumsum(block.lengths) - block.lengths
        for segment, row in enumerate(begins.tolist()):
            who = (int(block.agent_ids[segment]), *block.observations[0][row, :3].astype(int).tolist())
            by_episode[who].add(bool(learned[segment]))
        num_ended += int((learned & (block.endings != CUT)).sum())
    assert all(len(policies) == 1 for policies in by_episode.values())
    assert {policy for policies in by_episode.values() for policy in policies} == {True, False}
    return num_ended


def check_rows(recorder: Recorder, name: str) -> int:
    """Every row that is learned from has the log-probability that the policy gave it which learned then; returns how
    many there are."""
    num_checked, versions = 0, recorder.versions(name)
    for block in recorder.blocks[name]:
        of_learned = learned_segments(block).repeat(block.lengths)
        recent = [versions[version] for version in sorted(versions) if version >= block.policy_version][:6]
        fits = [log_probs_fit(recorder.trainers[name], weights, block) for weights in recent]
        assert not of_learned.any() or np.any(fits, axis=0)[of_learned].all()
        num_checked += int(of_learned.sum())
    return num_checked


def log_probs_fit(trainer: Any, weights: Weights, block: Trajectories) -> np.ndarray[Any, Any]:
    """bool[N], whether these weights give each action the log-probability that it was chosen with."""
    policy = trainer.make_policy(0)
    policy.load(weights)
    count = block.num_rows
    decisions = DecisionSteps(np.arange(count), block.observations, np.zeros(count, np.float32))
    actions = Actions(block.continuous_actions, block.discrete_actions)
    fits: np.ndarray[Any, Any] = np.isclose(policy.evaluate(decisions, actions).log_probs, block.log_probs, atol=1e-5)
    return fits.all(1)


THREE = ["Duelist?team=0", "Duelist?team=1", "Duelist?team=2"]


@pytest.mark.parametrize(
    ("threaded", "workers", "env_kwargs"),
    [
        (False, 0, {}),
        (False, 2, {}),
        (True, 0, {}),
        pytest.param(True, 2, {}, marks=pytest.mark.slow),
        (False, 0, {"size": 2}),
        pytest.param(False, 2, {"size": 2}, marks=pytest.mark.slow),
        (False, 0, {"names": THREE}),
    ],
)
def test_what_opponents_do_is_never_learned_and_every_game_is_rated_once(
    threaded: bool, workers: int, env_kwargs: dict[str, Any], tmp_path: Path, recorder: Recorder
) -> None:
    run = run_to_end(duels(tmp_path, threaded=threaded, env_kwargs=env_kwargs, env_settings={"num_workers": workers}))
    assert run.launch.exit_code == 0, run.recent_events()
    num_ended = check_episodes(recorder.blocks["Duelist"])
    assert check_rows(recorder, "Duelist") >= MAX_STEPS
    games = [game for block in recorder.blocks["Duelist"] for game in block.games]
    assert len(games) * env_kwargs.get("size", 1) == num_ended > 100
    assert {len(game.opponents) for game in games} == {len(env_kwargs.get("names", "ab")) - 1}
    rated = state_of(run)["league"]
    is_queued = threaded  # the last blocks were rated, and came too late to be learned from
    assert rated["num_games"] == len(games) or (is_queued and rated["num_games"] > len(games))
    reports = run.of(LeagueReported)
    assert {report.learning_team for report in reports} == {*range(len(env_kwargs.get("names", "ab")))}
    assert all(len(report.snapshots) <= SELF_PLAY["window"] for report in reports)
    assert reports[-1].num_games == rated["num_games"] or (is_queued and reports[-1].num_games > rated["num_games"])
    assert not any(snapshot.is_playing for snapshot in reports[-1].snapshots), "no game goes on"
    ratings = [summary.metrics["Self-play/ELO"] for summary in run.of(MetricsReported)]
    assert len(set(ratings)) > 3


def state_of(run: LiveRun, name: str = "Duelist") -> Any:
    """What the newest checkpoint of a behavior keeps of its league."""
    saved = [event for event in run.of(CheckpointSaved) if event.behavior == name][-1]
    return read(run.folder / saved.path)[0].part("self_play").values


def test_a_team_that_learns_changes_as_mlagents_changes_it(tmp_path: Path, recorder: Recorder) -> None:
    run = run_to_end(duels(tmp_path))
    turns = [event.message for event in run.of(LogEmitted) if "learns from here" in event.message]
    steps = [int(text.rsplit("step ")[-1].rstrip(")").replace(",", "")) for text in turns]
    assert [text.split()[1] for text in turns] == ["1", "0", "1", "0"][: len(turns)]
    assert len(turns) >= 3
    expected = {event.next_team_change for event in run.of(LeagueReported)}
    assert all(min(abs(step - each) for each in expected) < 130 for step in steps)
    assert all(
        SELF_PLAY["team_change"] < later - before < 1100 for before, later in zip([0, *steps], steps, strict=False)
    )


@pytest.mark.parametrize("workers", [0, 2])
def test_only_the_learner_of_the_team_that_learns_learns(workers: int, tmp_path: Path, recorder: Recorder) -> None:
    """An asymmetric game: the other behavior rests, and its experience is not kept."""
    settings = {
        "env_kwargs": {"names": ["Attacker?team=0", "Defender?team=1"]},
        "env_settings": {"num_workers": workers},
    }
    run = run_to_end(duels(tmp_path, ("Attacker", "Defender"), **settings))
    assert run.launch.exit_code == 0, run.recent_events()
    learning = [(event.behavior, event.is_learning, event.step) for event in run.of(LeagueReported)]
    assert {(name, is_learning) for name, is_learning, _ in learning} == {
        (name, is_learning) for name in ("Attacker", "Defender") for is_learning in (True, False)
    }
    for name in ("Attacker", "Defender"):
        assert check_rows(recorder, name) >= MAX_STEPS
        games = [game for block in recorder.blocks[name] for game in block.games]
        assert {opponent.behavior for game in games for opponent in game.opponents} == {"Attacker", "Defender"} - {name}
        assert state_of(run, name)["league"]["num_games"] == len(games) > 50


def test_a_resume_goes_on_with_the_same_league_at_eight_cuts(tmp_path: Path, recorder: Recorder) -> None:
    """Window, ratings, learning team, counters, opponents, and the generators that draw the next ones and act."""
    before = State()
    for cut in range(8):
        settings = {"resume": cut > 0}
        run = run_to_end(duels(tmp_path, max_steps=400 * (cut + 1), checkpoint_settings=settings))
        assert run.launch.exit_code == 0, run.recent_events()
        saved = run.of(CheckpointSaved)[-1]
        kept = read(run.folder / saved.path)[0].part("self_play")
        if cut:
            begun = recorder.begun[-1]["Duelist"]
            assert begun.values == before.values
            assert begun.tensors.keys() == before.tensors.keys()
            assert all(np.array_equal(begun.tensors[name], array) for name, array in before.tensors.items())
        assert kept.values != recorder.begun[-1]["Duelist"].values, "the league has changed since"
        before = kept


def test_a_roll_back_takes_the_league_along(tmp_path: Path, recorder: Recorder) -> None:
    with live(duels(tmp_path, max_steps=100_000, checkpoint_interval=500)) as run:
        saved = run.wait_for(CheckpointSaved)
        kept = read(run.folder / saved.path)[0].part("self_play").values["league"]
        run.wait_for(ProgressReported, lambda event: event.step > saved.step + 1000)
        mark = len(run.events)
        assert run.send(RollBack("Duelist", saved.path)).ok, run.recent_events()
        after = run.wait_for(LeagueReported, lambda event: event.step < saved.step + 400, after=mark)
        assert after.num_games < kept["num_games"] + 400
        run.send(Stop("now"))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_team_that_appears_late_takes_part(workers: int, tmp_path: Path, recorder: Recorder) -> None:
    kwargs = {"names": THREE, "late": 60}
    run = run_to_end(duels(tmp_path, env_kwargs=kwargs, env_settings={"num_workers": workers}))
    assert run.launch.exit_code == 0, run.recent_events()
    assert any("team 2 has appeared" in event.message for event in run.of(LogEmitted))
    assert run.of(LeagueReported)[-1].teams == (0, 1, 2)
    assert check_rows(recorder, "Duelist") >= MAX_STEPS


@pytest.mark.parametrize("workers", [0, 2])
def test_a_team_without_agents_passes_its_turn_on(
    workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where workers act, whose rounds end with what was learned, or after a thousand steps without: one such turn
    has to do."""
    monkeypatch.setattr(matchmaking, "DESERTED_STEPS", 400)
    kwargs = {"names": THREE, "absent": 1}
    run = run_to_end(
        duels(tmp_path, env_kwargs=kwargs, env_settings={"num_workers": workers}, max_steps=MAX_STEPS // 3)
    )
    assert run.launch.exit_code == 0, run.recent_events()
    warnings = [event.message for event in run.of(LogEmitted) if event.level == "warning"]
    assert any("team 1, whose turn it is to learn, has had no agent for 400 steps" in text for text in warnings)


def test_one_team_is_refused_before_anything_trains(tmp_path: Path) -> None:
    run = run_to_end(duels(tmp_path, env_kwargs={"names": ["Duelist?team=3"]}))
    assert run.launch.exit_code == 2
    assert "behaviors.Duelist.self_play: " in str(run.launch.error)
    assert "has only one team, of Duelist" in str(run.launch.error)


def test_games_that_were_cut_off_do_not_count_unless_they_are_draws(tmp_path: Path, recorder: Recorder) -> None:
    run = run_to_end(duels(tmp_path / "a", env_kwargs={"interrupted": True}))
    assert state_of(run)["league"]["num_games"] == 0
    self_play = {**SELF_PLAY, "interrupted_games": "draw"}
    run = run_to_end(duels(tmp_path / "b", env_kwargs={"interrupted": True}, self_play=self_play))
    assert state_of(run)["league"]["num_games"] > 100
    assert {(snapshot.won, snapshot.lost) for snapshot in run.of(LeagueReported)[-1].snapshots} == {(0, 0)}


def test_without_self_play_the_start_names_the_teams(tmp_path: Path) -> None:
    run = run_to_end(duels(tmp_path, self_play=None))
    started = run.of(BehaviorStarted)[0]
    assert (started.teams, started.plays_itself) == ((0, 1), False)
    assert run.of(LeagueReported) == []


def test_a_lesson_ends_by_the_rating_of_a_behavior(tmp_path: Path) -> None:
    ends = {"behavior": "Duelist", "measure": "Elo", "threshold": 1201.0}
    lessons = {"curriculum": [{"name": "a", "value": 1, "completion_criteria": ends}, {"name": "b", "value": 2}]}
    run = run_to_end(duels(tmp_path, environment_parameters={"size": lessons}))
    assert run.launch.exit_code == 0, run.recent_events()
    changed = run.of(LessonChanged)[0]
    before = [event for event in run.of(LeagueReported) if event.step <= changed.step]
    after = [event for event in run.of(LeagueReported) if event.step >= changed.step]
    assert min(event.rating for event in before) <= 1201 < max(event.rating for event in (before[-1], after[0]))


@pytest.mark.parametrize("num_kills", [4, pytest.param(60, marks=pytest.mark.slow)])
def test_of_workers_that_are_killed_finished_games_alone_are_rated(
    num_kills: int, tmp_path: Path, recorder: Recorder
) -> None:
    """Three workers, one of which is killed now and then."""
    no_limit = {"restarts_rate_limit_n": -1, "max_lifetime_restarts": -1}
    config = duels(tmp_path, max_steps=10_000_000, env_settings={"num_envs": 3, "num_workers": 3, **no_limit})
    with live(config) as run:
        for number in range(num_kills):
            step = max([event.step for event in run.of(ProgressReported)], default=0)
            run.wait_for(ProgressReported, lambda event, step=step: event.step > step + 200)
            mark = len(run.events)
            sampled = run.wait_for(WorkersSampled, lambda event: None not in [each.pid for each in event.workers], mark)
            pid = sampled.workers[number % 3].pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            run.wait_for(EnvironmentRestarted, after=mark)
        run.send(Stop("checkpoint"))
        run.wait()
    assert check_rows(recorder, "Duelist") > 200 * num_kills
    blocks = recorder.blocks["Duelist"]
    games = [game for block in blocks for game in block.games]
    ended = [(learned_segments(block) & (block.endings == Ending.TERMINATED)).sum() for block in blocks]
    assert len(games) == sum(ended)
    assert state_of(run)["league"]["num_games"] == len(games)


def test_it_learns_to_win(tmp_path: Path) -> None:
    """The largest number is always right: it is found, and the rating says so."""
    config = duels(tmp_path, max_steps=10_000, self_play={**SELF_PLAY, "elo_k": 8.0, "window": 100})
    run = run_to_end(config)
    assert run.of(LeagueReported)[-1].rating > 1300, "it stays near 1200 where nothing is learned"
