"""Self-play in Unity players, by the real command line; a stand-in plays them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rl_tui.engine.session.messages import (
    BehaviorStarted,
    EnvironmentRestarting,
    LeagueReported,
    LogEmitted,
    PolicyExported,
)
from tests.end_to_end.player_games import (
    AGENTS_OF_A_SIDE,
    SOCCER,
    check_league,
    check_resumed,
    games_of_players,
    saved_league,
)
from tests.end_to_end.program import events_of, run
from tests.end_to_end.test_unity import players_of
from tests.unity_player.executable import make_player

pytestmark = pytest.mark.slow

GOALIE = SOCCER + SOCCER.replace("behaviors:\n", "").replace("Striker", "Goalie")
LATE = json.dumps(
    [
        {"name": "Striker?team=0", "branches": [3], "observations": [[4]]},
        {"name": "Striker?team=1", "branches": [3], "observations": [[4]], "late": 300},
    ]
)


def train(folder: Path, text: str, *words: str) -> None:
    """One whole run `games`."""
    (folder / "games.yaml").write_text(text)
    make_player(folder)
    flags = ["--no-ui", "--run-id=games", "--env=./player", "--seed=1", "--no-graphics"]
    exit_code, stdout, stderr = run("games.yaml", *flags, *words, folder=folder)
    assert (exit_code, stderr) == (0, ""), stdout
    assert players_of(folder) == []


def test_games_of_a_player_that_is_killed_are_neither_rated_nor_lost_for_the_league(tmp_path: Path) -> None:
    results, noted = tmp_path / "results/games", tmp_path / "noted"
    players = ["--num-envs=2", "--env-args", "--task", "soccer", "--games", str(noted)]
    trouble = ["--trouble", "kill@200", "--trouble-once", str(tmp_path / "once")]
    train(tmp_path, SOCCER, *players, *trouble)
    events, league, played = events_of(results), saved_league(tmp_path, "games"), games_of_players(noted)
    assert len([event for event in events if isinstance(event, EnvironmentRestarting)]) == 1
    check_league(league, events)
    assert played.won * 0.8 < league.num_games <= played.won
    assert 12000 <= league.step <= AGENTS_OF_A_SIDE * played.steps, "all of one side at most"

    train(tmp_path, SOCCER.replace("12000", "16000"), "--resume", *players)
    more = events_of(results)
    check_resumed(league, next(event for event in more[len(events) :] if isinstance(event, LeagueReported)))
    longer = saved_league(tmp_path, "games")
    check_league(longer, more)
    assert played.won < games_of_players(noted).won
    assert league.num_games < longer.num_games <= games_of_players(noted).won


def test_strikers_and_goalies_learn_in_turn_and_both_are_exported(tmp_path: Path) -> None:
    noted = tmp_path / "noted"
    train(tmp_path, GOALIE, "--num-envs=1", "--env-args", "--task", "goalie", "--games", str(noted))
    events = events_of(tmp_path / "results/games")
    started = {event.behavior: event.teams for event in events if isinstance(event, BehaviorStarted)}
    assert started == {"Striker": (0,), "Goalie": (1,)}
    reports = [event for event in events if isinstance(event, LeagueReported)]
    assert {(report.behavior, report.is_learning) for report in reports} == {
        (behavior, is_learning) for behavior in started for is_learning in (True, False)
    }
    leagues = {behavior: saved_league(tmp_path, "games", behavior) for behavior in started}
    learned = sum(league.step / num for league, num in zip(leagues.values(), (8, 4), strict=True))
    assert 0.8 * games_of_players(noted).steps < learned, "at almost every step some behavior learns"
    for behavior, league in leagues.items():
        assert league.step >= 12000
        assert league.num_games > 100
        assert (tmp_path / "results/games" / f"{behavior}.onnx").stat().st_size > 0
    assert {event.behavior for event in events if isinstance(event, PolicyExported)} == {*started}


def test_team_that_appears_late_plays_and_learns_in_its_turn(tmp_path: Path) -> None:
    train(tmp_path, SOCCER, "--num-envs=1", "--env-args", "--task", "crowd", "--spec", LATE)
    events = events_of(tmp_path / "results/games")
    [late] = [event for event in events if isinstance(event, LogEmitted) and "appeared" in event.message]
    assert late.message == "team 1 has appeared, and will learn in turn"
    reports = [event for event in events if isinstance(event, LeagueReported)]
    assert [report.teams for report in reports] == sorted(report.teams for report in reports)
    assert {report.learning_team for report in reports if report.teams == (0, 1)} == {0, 1}
    assert reports[-1].num_games > 100
    assert (tmp_path / "results/games/Striker.onnx").stat().st_size > 0
