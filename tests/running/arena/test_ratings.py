"""Ratings of an arena: the maximum of Davidson's likelihood, and intervals that hold the truth as often as they say."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from rl_tui.engine.running.arena.ratings import MEAN_RATING, POINTS, PRIOR_WINS, Results, rate

STRENGTHS = np.array([-1.2, -0.3, 0.4, 1.1])
DRAW_ODDS = 0.7


def chances(own: float, other: float, draw_odds: float) -> NDArray[np.float64]:
    """Of a win, a loss and a draw: the model as Davidson has it, with strengths in place of their logarithms."""
    win, loss = math.exp(own), math.exp(other)
    draw = draw_odds * math.sqrt(win * loss)
    return np.array([win, loss, draw]) / (win + loss + draw)


def drawn(strengths: NDArray[np.float64], draw_odds: float, num_games: int, seed: int) -> Results:
    """So many games of each pair."""
    random, count = np.random.default_rng(seed), len(strengths)
    wins, draws = np.zeros((count, count)), np.zeros((count, count))
    for i, j in itertools.combinations(range(count), 2):
        wins[i, j], wins[j, i], draws[i, j] = random.multinomial(
            num_games, chances(strengths[i], strengths[j], draw_odds)
        )
        draws[j, i] = draws[i, j]
    return Results(wins, draws)


def log_likelihood(results: Results, strengths: NDArray[np.float64], draw_odds: float) -> float:
    total = 0.0
    for i, j in itertools.combinations(range(len(strengths)), 2):
        counts = np.array([results.wins[i, j], results.wins[j, i], results.draws[i, j]])
        found = chances(strengths[i], strengths[j], draw_odds)
        total += float((counts[counts > 0] * np.log(found[counts > 0])).sum())
    return total


def best_by_search(results: Results) -> NDArray[np.float64]:
    """The strengths, the first of them 0, and the logarithm of the draw odds: the best of a grid that is narrowed."""
    center, width = np.zeros(len(results.wins)), 4.0
    while width > 1e-5:
        corners = itertools.product(*([-width, -width / 2, 0.0, width / 2, width],) * len(center))
        points = [center + corner for corner in corners]
        values = [log_likelihood(results, np.array([0.0, *point[:-1]]), math.exp(point[-1])) for point in points]
        best = points[int(np.argmax(values))]
        width, center = (width if np.abs(best - center).max() >= width else width / 2), best
    return np.array([0.0, *center])


@pytest.mark.parametrize("seed", range(3))
def test_ratings_are_the_best_that_a_search_finds(seed: int) -> None:
    results = drawn(STRENGTHS[:3], DRAW_ODDS, 20, seed)
    found, expected = rate(results, anchor=0), best_by_search(results)
    assert not found.has_prior
    assert found.points == pytest.approx(POINTS * expected[:3], abs=0.05)
    assert math.log(found.draw_odds) == pytest.approx(expected[3], abs=1e-3)


def test_two_players_without_draws_are_as_far_apart_as_their_odds() -> None:
    results = Results(np.array([[0.0, 30.0], [10.0, 0.0]]), np.zeros((2, 2)))
    found = rate(results, anchor=1)
    assert found.points == pytest.approx([400 * math.log10(3), 0])
    assert found.draw_odds == 0
    error = POINTS * math.sqrt(1 / (40 * 0.75 * 0.25))  # of a logit, by the binomial distribution
    assert found.difference(0, 1) == pytest.approx((found.points[0], 1.959964 * error))
    assert (found.margin(0), found.margin(1)) == pytest.approx((1.959964 * error, 0))


def test_intervals_of_differences_hold_the_truth_in_at_least_90_of_100() -> None:
    pairs = list(itertools.combinations(range(len(STRENGTHS)), 2))
    held = dict.fromkeys(pairs, 0)
    for seed in range(100):
        found = rate(drawn(STRENGTHS, DRAW_ODDS, 60, seed), anchor=None)
        for i, j in pairs:
            estimate, margin = found.difference(i, j)
            held[i, j] += abs(estimate - POINTS * (STRENGTHS[i] - STRENGTHS[j])) <= margin
    assert min(held.values()) >= 90
    assert sum(held.values()) < 100 * len(pairs), "intervals that always hold it would be too wide"


def test_without_an_anchor_the_mean_is_fixed_and_differences_are_the_same() -> None:
    results = drawn(STRENGTHS, DRAW_ODDS, 60, seed=1)
    free, anchored = rate(results, anchor=None), rate(results, anchor=2)
    assert free.points.mean() == pytest.approx(MEAN_RATING)
    assert anchored.points[2] == 0
    assert anchored.margin(2) == pytest.approx(0, abs=1e-6)
    for i, j in itertools.combinations(range(4), 2):
        assert free.difference(i, j) == pytest.approx(anchored.difference(i, j))


def test_player_who_wins_everything_is_rated_with_a_weak_prior() -> None:
    results = Results(np.array([[0.0, 50, 50], [0, 0, 30], [0, 20, 0]]), np.zeros((3, 3)))
    found = rate(results, anchor=2)
    assert found.has_prior
    assert found.points[0] > found.points[1] > found.points[2] == 0
    assert found.difference(0, 1)[1] > found.difference(1, 2)[1], "how much better it is, is hardly known"
    added = Results(results.wins + PRIOR_WINS * (1 - np.eye(3)), results.draws)
    assert found.points == pytest.approx(rate(added, anchor=2).points)


@pytest.mark.parametrize(
    ("wins", "draws"),
    [
        ([[0, 0], [0, 0]], [[0, 8], [8, 0]]),  # nothing but draws
        ([[0, 5], [0, 0]], [[0, 8], [8, 0]]),  # never lost
        ([[0, 0], [0, 0]], [[0, 0], [0, 0]]),  # no game ended
        ([[0, 9, 0], [3, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 0], [0, 0, 0]]),  # one has not played
    ],
)
def test_results_that_do_not_determine_all_ratings_give_finite_ones(
    wins: list[list[float]], draws: list[list[float]]
) -> None:
    found = rate(Results(np.array(wins, float), np.array(draws, float)), anchor=None)
    assert found.has_prior
    assert np.isfinite(found.points).all()
    assert all(math.isfinite(found.margin(player)) and found.margin(player) > 0 for player in range(len(wins)))


def test_draws_alone_connect_a_player_with_the_others() -> None:
    wins = np.array([[0.0, 6, 0], [4, 0, 0], [0, 0, 0]])
    draws = np.array([[0.0, 2, 0], [2, 0, 9], [0, 9, 0]])
    found = rate(Results(wins, draws), anchor=1)
    assert not found.has_prior
    assert found.points[2] == pytest.approx(0, abs=1e-3)
