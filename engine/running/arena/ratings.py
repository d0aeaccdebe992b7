"""Ratings of players by the results of their games: the Bradley-Terry model with draws, by maximum likelihood (Davidson
1970, "On extending the Bradley-Terry model to accommodate ties in paired comparison experiments").

With strengths pi = exp(theta) and nu, how often equal players draw, player i beats player j with the probability

    pi_i / (pi_i + pi_j + nu sqrt(pi_i pi_j)),    and draws with    nu sqrt(pi_i pi_j) / (the same sum).

Its logarithm is concave in theta and log nu, so Newton's method finds the only maximum. The seat has no parameter:
where each pair plays as often in every seat, what a seat is worth cancels in the totals, by which theta is estimated.

Shapes: P players, M pairs of players.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]

POINTS = 400 / math.log(10)  # of Elo's scale, for one unit of theta
MEAN_RATING = 1200.0  # of all players, where none is the anchor: ML-Agents' initial_elo
QUANTILE = 1.959964  # of the standard normal distribution, for 95 %
PRIOR_WINS = 0.5  # of each against each, where results alone do not determine all ratings
MOST_ITERATIONS = 100  # of Newton's method, which needs about ten
SMALLEST_GAIN = 1e-12  # of the log-likelihood, relative to it


@dataclass(frozen=True, slots=True)
class Results:
    """Games that were played to their ends. wins: f64[P, P], of the row against the column. draws: f64[P, P],
    symmetric."""

    wins: Float64
    draws: Float64

    @property
    def num_games(self) -> Float64:
        """f64[P, P], of each pair."""
        return self.wins + self.wins.T + self.draws


@dataclass(frozen=True, slots=True)
class Ratings:
    """points: f64[P], on Elo's scale, 0 for the anchor, or else MEAN_RATING on average. covariance: f64[P, P], of the
    estimates. draw_odds: nu. has_prior: PRIOR_WINS were added, since results alone do not determine all ratings."""

    points: Float64
    covariance: Float64
    draw_odds: float
    has_prior: bool

    def margin(self, player: int) -> float:
        """Half the width of the 95 % interval of a rating, as its distance from the anchor, or from the mean."""
        return QUANTILE * math.sqrt(max(0.0, self.covariance[player, player]))

    def difference(self, player: int, other: int) -> tuple[float, float]:
        """How far a player is ahead of another one, and half the width of the 95 % interval of that."""
        own, of_other, both = (self.covariance[place] for place in ((player, player), (other, other), (player, other)))
        return float(self.points[player] - self.points[other]), QUANTILE * math.sqrt(
            max(0.0, own + of_other - 2 * both)
        )


def rate(results: Results, anchor: int | None) -> Ratings:
    """The ratings of at least two players. anchor: who has the rating 0."""
    has_prior = not _determines_all(results)
    wins = results.wins + PRIOR_WINS * (1 - np.eye(len(results.wins))) if has_prior else results.wins
    pairs = _Pairs(Results(wins, results.draws))
    parameters, covariance = _maximum(pairs)
    count = len(wins)
    centering = np.eye(count) - (1 / count if anchor is None else np.eye(count)[anchor])
    points = POINTS * (centering @ parameters[:count]) + (MEAN_RATING if anchor is None else 0.0)
    draw_odds = math.exp(parameters[count]) if pairs.has_draws else 0.0
    return Ratings(points, POINTS**2 * centering @ covariance[:count, :count] @ centering.T, draw_odds, has_prior)


def _determines_all(results: Results) -> bool:
    """Whether the likelihood has a maximum.

    It has one where some players have won against each other in a circle, so that nu is finite, and no group of players
    is without a win or a draw against the others (Ford 1957, for games without draws). In rare tables without such a
    circle it has one, too.
    """
    won = results.wins > 0
    return bool(_reached(won).diagonal().any() and _reached(won | (results.draws > 0)).all())


def _reached(edges: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """bool[P, P], whether edges lead from the row to the column."""
    reached = edges.copy()
    for player in range(len(edges)):
        reached |= reached[:, player, None] & reached[None, player]
    return reached


class _Pairs:
    """The games as choices among three outcomes, whose utilities are linear in the parameters theta and log nu.

    counts: f64[M, 3], the first one's wins, its losses, and draws. utilities: f64[M, 3, P + 1], or P without draws.
    """

    def __init__(self, results: Results) -> None:
        count = len(results.wins)
        first, second = np.triu_indices(count, 1)
        counts = (results.wins[first, second], results.wins[second, first], results.draws[first, second])
        self.has_draws = bool(results.draws.any())
        self.counts: Float64 = np.stack(counts, axis=1)
        self.utilities: Float64 = np.zeros((len(first), 3, count + self.has_draws))
        rows = np.arange(len(first))
        self.utilities[rows, 0, first] = self.utilities[rows, 1, second] = 1.0
        self.utilities[rows, 2, first] = self.utilities[rows, 2, second] = 0.5
        self.utilities[:, 2, count:] = 1.0
        if not self.has_draws:
            self.counts, self.utilities = self.counts[:, :2], self.utilities[:, :2]

    def log_likelihood(self, parameters: Float64) -> float:
        """Up to a constant."""
        return float((self.counts * _log_softmax(self.utilities @ parameters)).sum())

    def derivatives(self, parameters: Float64) -> tuple[Float64, Float64]:
        """The gradient of the log-likelihood, and the observed information, which is minus its second derivative."""
        chances = np.exp(_log_softmax(self.utilities @ parameters))
        totals = self.counts.sum(axis=1, keepdims=True)
        gradient = np.einsum("mo,mop->p", self.counts - totals * chances, self.utilities)
        expected = np.einsum("mo,mop->mp", chances, self.utilities)
        centered = self.utilities - expected[:, None]
        return gradient, np.einsum("mo,mop,moq->pq", totals * chances, centered, centered)


def _log_softmax(utilities: Float64) -> Float64:
    shifted = utilities - utilities.max(axis=1, keepdims=True)
    log_chances: Float64 = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return log_chances


def _maximum(pairs: _Pairs) -> tuple[Float64, Float64]:
    """The parameters, with thetas that add up to 0, and their covariance: the inverse of the observed information.

    Only differences of thetas matter, so the information is singular along their common shift. A term in that direction
    makes it regular, and is taken out of the inverse.
    """
    size = pairs.utilities.shape[2]
    num_players = size - pairs.has_draws
    shift = np.where(np.arange(size) < num_players, 1 / math.sqrt(num_players), 0.0)
    parameters, value = np.zeros(size), pairs.log_likelihood(np.zeros(size))
    for _ in range(MOST_ITERATIONS):
        gradient, information = pairs.derivatives(parameters)
        step = np.linalg.solve(information + np.outer(shift, shift), gradient)
        found = pairs.log_likelihood(parameters + step)
        while found < value and np.abs(step).max() > SMALLEST_GAIN:
            step /= 2
            found = pairs.log_likelihood(parameters + step)
        gain, parameters, value = found - value, parameters + step, found
        if gain <= SMALLEST_GAIN * abs(value):
            break
    _, information = pairs.derivatives(parameters)
    inverse: Float64 = np.linalg.inv(information + np.outer(shift, shift)) - np.outer(shift, shift)
    return parameters, inverse
