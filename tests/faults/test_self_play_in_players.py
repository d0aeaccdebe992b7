"""Self-play in three Unity players of which one is killed every five seconds, by the real command line."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from rl_tui.engine.session.messages import EnvironmentRestarting, LeagueReported
from tests.end_to_end.player_games import (
    AGENTS_OF_A_SIDE,
    SOCCER,
    check_league,
    check_resumed,
    games_of_players,
    saved_league,
)
from tests.end_to_end.program import events_of, finish, read_until
from tests.end_to_end.test_unity import players_of
from tests.faults.test_runs_with_players import Violence, kill, restarted_workers, train

UNENDING = SOCCER.replace("12000", "1e9")


@pytest.mark.faults
@pytest.mark.timeout(1200)
def test_a_league_whose_players_are_killed_for_a_minute_has_finished_games_alone_and_resumes(tmp_path: Path) -> None:
    noted, results = tmp_path / "noted", tmp_path / "results/u1"
    arguments = "--task", "soccer", "--games", str(noted), "--slow-step", "0.005"
    with train(tmp_path, text=UNENDING, arguments=arguments) as training:
        said = read_until(training, "Mean Reward")
        violence = Violence(training, tmp_path, 60, [signal.SIGKILL], (4.0, 6.0))
        violence.start()
        exit_code, stdout, stderr = finish(training, 600)
        violence.join()
    assert (exit_code, stderr) == (130, ""), said + stdout
    assert players_of(tmp_path) == []
    events, league, played = events_of(results), saved_league(tmp_path, "u1"), games_of_players(noted)
    restarts = [event for event in events if isinstance(event, EnvironmentRestarting)]
    print(f"{len(restarts)} restarts, step {league.step} of {AGENTS_OF_A_SIDE * played.steps}", end=", ")
    print(f"{league.num_games} of {played.won} games rated")
    assert len(restarts) >= 8
    assert restarted_workers(tmp_path) == {0, 1, 2}
    check_league(league, events)
    assert played.won * 0.7 < league.num_games <= played.won
    assert 0.7 * AGENTS_OF_A_SIDE * played.steps < league.step <= AGENTS_OF_A_SIDE * played.steps
    turns = [event.learning_team for event in events if isinstance(event, LeagueReported)]
    assert {*turns} == {0, 1}

    with train(tmp_path, "--resume", text=UNENDING, arguments=arguments) as training:
        assert f" from step {league.step} of" in read_until(training, "from step")
        read_until(training, "Mean Reward")
        assert kill(training) == []
    assert players_of(tmp_path) == []
    more = events_of(results)[len(events) :]
    check_resumed(league, next(event for event in more if isinstance(event, LeagueReported)))
