"""Ratings find the truth: results are drawn with known odds, and nothing learns."""

from __future__ import annotations

import numpy as np

from rl_tui.engine.learning.self_play.elo import expected_score
from rl_tui.engine.learning.self_play.league import League, Result
from tests.learning.self_play.leagues import loaded, saved, settings, weights

RUNS = 200
STRENGTHS = (-150.0, -75.0, 0.0, 75.0, 150.0)  # of the snapshots
OWN = 150.0
NEAR = 30.0  # points
# The update r += k (score - expected) is a random walk that is drawn back to the truth: at equal strength its standard
# deviation is sqrt(k p (1 - p) / slope) / sqrt(2) = 9.3 sqrt(k) points where slope = ln 10 / 400 p (1 - p), and a
# difference shrinks to 1 / e in 1 / (k slope) = 695 / k games. So k = 1 stays within 30 points nearly always, but
# needs thousands of games to come there, and larger ones before save most of these.
GAMES_BY_K = {16.0: 300, 4.0: 300, 1.0: 1500}


def rated(seed: int) -> float:
    """How far the rating is from the truth, over the mean of the window's."""
    random = np.random.default_rng(seed)
    league = League(settings(window=len(STRENGTHS)), seed)
    league.begin(weights(0), 0)
    for place in range(1, len(STRENGTHS)):
        assert league.save_if_due(11 * place, lambda: weights(0))
    chances = np.array([expected_score(OWN, strength) for strength in STRENGTHS])
    for k, count in GAMES_BY_K.items():
        league = loaded(saved(league), elo_k=k, window=len(STRENGTHS))  # as a resume with another file
        standings = [snapshot.standing for snapshot in league.snapshots]
        opponents = random.integers(0, len(STRENGTHS), count)
        has_won = random.random(count) < chances[opponents]
        for opponent, score in zip(opponents.tolist(), has_won.astype(float).tolist(), strict=True):
            league.rate([Result(standings[opponent], score)])
    ratings = [snapshot.standing.rating for snapshot in league.snapshots]
    assert abs(sum(ratings) + league.rating - 1200 * (1 + len(ratings))) < 1e-6, "what one gains another one loses"
    return float(league.rating - np.mean(ratings) - OWN)


def test_ratings_are_within_30_points_of_the_truth() -> None:
    errors = np.array([rated(seed) for seed in range(RUNS)])
    assert np.mean(np.abs(errors) <= NEAR) >= 0.95
    assert abs(errors.mean()) < NEAR / 3
