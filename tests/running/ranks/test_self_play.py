"""Self-play on several ranks: rank 0 decides which team learns and who plays, and rates the games of all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rl_tui.engine.session.messages import LeagueReported, RollBack, SaveCheckpoint, Stop
from tests.learning.sync.ranks import Ranks
from tests.running.ranks.rank_runs import Part, Script
from tests.running.ranks.test_ranks import as_one, parts_of, trained
from tests.running.runs import ENDLESS, behavior, configuration, run_to_end
from tests.running.self_play.test_self_play import MAX_STEPS, duels

TWO_BEHAVIORS = ("Attacker?team=0", "Defender?team=1")


def course(part: Part, name: str) -> list[tuple[object, ...]]:
    """Who learned, and which snapshots there were, each once."""
    found: list[tuple[object, ...]] = []
    for event in part.of(LeagueReported):
        now = event.learning_team, *(each.step for each in event.snapshots)
        if event.behavior == name and now not in found:
            found.append(now)
    return found


def leagues_are_alike(parts: Sequence[Part], *names: str) -> None:
    """All ranks took the same snapshots, and let the same teams learn. The last move may come after a report."""
    for name in names:
        expected = course(parts[0], name)
        assert len(expected) > 3
        for part in parts[1:]:
            assert course(part, name) == expected


@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize("size", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_the_league_is_one_on_all_ranks(size: int, threaded: bool, tmp_path: Path, two: Ranks, three: Ranks) -> None:
    run = [duels(tmp_path, env_settings={"num_envs": 2 * size}, threaded=threaded)] * size
    parts = parts_of({2: two, 3: three}[size], run)
    first = as_one(parts)
    assert first.exit_code == 0, first.reason
    leagues_are_alike(parts, "Duelist")
    last = first.of(LeagueReported)[-1]
    alone = run_to_end(duels(tmp_path / "alone", env_settings={"num_envs": 2}))
    games = alone.of(LeagueReported)[-1].num_games
    assert last.num_games == pytest.approx(games, rel=0.25), "games of all ranks are rated"
    others = [
        sum(sum((each.won, each.drawn, each.lost)) for each in part.of(LeagueReported)[-1].snapshots)
        for part in parts[1:]
    ]
    assert not any(others)
    assert last.step >= MAX_STEPS


def test_teams_of_two_behaviors_take_turns_on_all_ranks(tmp_path: Path, two: Ranks) -> None:
    names = ("Attacker", "Defender")
    run = [duels(tmp_path, names, env_kwargs={"names": TWO_BEHAVIORS}, env_settings={"num_envs": 4})] * 2
    parts = parts_of(two, run)
    assert as_one(parts).exit_code == 0
    leagues_are_alike(parts, *names)


def roll_back(script: Script) -> None:
    """To a league of before."""
    run = script.run
    trained(script)
    saved = run.send(SaveCheckpoint("Duelist"))
    before = run.of(LeagueReported)[-1].snapshots[-1].step
    run.wait_for(LeagueReported, lambda event: event.snapshots[-1].step > before + 1000)
    assert run.send(RollBack("Duelist", saved.message)).ok
    trained(script)
    assert run.send(Stop()).ok


def test_a_league_is_rolled_back_on_all_ranks(tmp_path: Path, two: Ranks) -> None:
    run = [duels(tmp_path, env_settings={"num_envs": 4}, max_steps=ENDLESS, keep_checkpoints=0)] * 2
    parts = parts_of(two, run, roll_back)
    assert as_one(parts).exit_code == 0
    back = [[event.snapshots[-1].step for event in part.of(LeagueReported)] for part in parts]
    assert all(any(later < earlier for earlier, later in pairwise(steps)) for steps in back), back


def test_a_league_goes_on_with_another_number_of_ranks(tmp_path: Path, two: Ranks) -> None:
    run = [duels(tmp_path, env_settings={"num_envs": 4})] * 2
    first = as_one(parts_of(two, run))
    saved = first.of(LeagueReported)[-1]
    resumed = run_to_end(
        duels(tmp_path, env_settings={"num_envs": 4}, max_steps=2 * MAX_STEPS, checkpoint_settings={"resume": True})
    )
    begun = resumed.of(LeagueReported)[0]
    assert [each.step for each in begun.snapshots] == [each.step for each in saved.snapshots]
    assert begun.num_games == saved.num_games


@pytest.mark.parametrize("trainer", ["poca", "mappo"])
def test_groups_learn_on_several_ranks(trainer: str, tmp_path: Path, two: Ranks) -> None:
    """With groups of different sizes on them."""
    settings: Any = behavior(trainer_type=trainer, max_steps=2000)
    env = {"env": "toy:pong", "num_envs": 2, "env_kwargs": {"players": 2}}
    run = [configuration(tmp_path, {"Pong": settings}, env["env"], env_settings=env)] * 2
    first = as_one(parts_of(two, run))
    assert first.exit_code == 0, first.reason
