"""What a game counts for each side, and what ratings make of it."""

from __future__ import annotations

from typing import Any

import pytest

from rl_tui.engine.learning.self_play.elo import DRAW, LOSS, WIN, expected_score, scores_of
from rl_tui.engine.specs import LEARNING, Game, GameSide
from tests.learning.self_play.leagues import settings


def game(own: float, *others: float, own_total: float = 0, totals: tuple[float, ...] = (), cut: bool = False) -> Game:
    """A game in which these were the last rewards."""
    totals = totals or (0.0,) * len(others)
    opponents = [
        GameSide("Striker", team, team, *earned)
        for team, earned in enumerate(zip(others, totals, strict=True), start=1)
    ]
    return Game(GameSide("Striker", 0, LEARNING, own, own_total, cut), tuple(opponents))


@pytest.mark.parametrize(
    ("reward", "changes", "score"),
    [
        (1, {}, WIN),
        (0.001, {}, WIN),
        (0, {}, DRAW),
        (-0.001, {}, LOSS),
        (0.1, {"draw_margin": 0.1}, DRAW),
        (-0.1, {"draw_margin": 0.1}, DRAW),
        (0.11, {"draw_margin": 0.1}, WIN),
        (-0.11, {"draw_margin": 0.1}, LOSS),
    ],
)
def test_the_sign_of_the_last_reward_decides(reward: float, changes: dict[str, Any], score: float) -> None:
    """Of one's own, as in ML-Agents: what the opponent has earned does not matter."""
    for other in (-reward, reward, 5):
        assert scores_of(game(reward, other, own_total=-3), settings(**changes)) == [score]


def test_the_sign_of_the_return_decides_where_it_is_asked_for() -> None:
    by_return = settings(game_result="return", draw_margin=1)
    for total, score in ((3, WIN), (1, DRAW), (-1, DRAW), (-1.5, LOSS)):
        assert scores_of(game(-1, 1, own_total=total, totals=(9,)), by_return) == [score]


def test_against_several_each_counts_by_what_it_has_earned() -> None:
    assert scores_of(game(0, 1, -1, 0), settings()) == [LOSS, WIN, DRAW]
    assert scores_of(game(-1, 1, -1, -1), settings()) == [LOSS, DRAW, DRAW], "three losers have not lost to each other"
    assert scores_of(game(0.5, 0.4, 0.8), settings(draw_margin=0.2)) == [DRAW, LOSS]
    by_return = settings(game_result="return")
    assert scores_of(game(0, 9, 9, own_total=2, totals=(1, 3)), by_return) == [WIN, LOSS]


def test_a_game_that_was_cut_off_counts_as_the_file_says() -> None:
    for others in ((1,), (1, -1)):
        assert scores_of(game(1, *others, cut=True), settings()) is None
        assert scores_of(game(1, *others, cut=True), settings(interrupted_games="draw")) == [DRAW] * len(others)


def test_the_expected_score_is_elos_for_any_ratings() -> None:
    assert expected_score(1200, 1200) == 0.5
    assert expected_score(1600, 1200) == pytest.approx(10 / 11)
    assert expected_score(1200, 1600) == pytest.approx(1 / 11)
    assert expected_score(1e9, 0) == 1
    assert expected_score(0, 1e9) == pytest.approx(0)
