"""Advantages against the plainest loop there is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_tui.engine.learning.discounted_sums import discounted_sums
from rl_tui.engine.learning.on_policy.advantages import gae
from rl_tui.engine.specs import Ending

SEEDS = st.integers(0, 2**32 - 1)


def slow_gae(
    rewards: np.ndarray,
    values: np.ndarray,
    next_values: np.ndarray,
    lengths: np.ndarray,
    gammas: np.ndarray,
    lam: float,
) -> np.ndarray:
    """Equation 16 of Schulman et al. 2016, one segment, stream and row after the other, in Python's floats."""
    advantages = np.zeros(rewards.shape)
    start = 0
    for segment, length in enumerate(lengths):
        for stream, gamma in enumerate(gammas.tolist()):
            following, advantage = float(next_values[segment, stream]), 0.0
            for row in reversed(range(start, start + length)):
                delta = float(rewards[row, stream]) + gamma * following - float(values[row, stream])
                advantage = delta + gamma * lam * advantage
                advantages[row, stream] = advantage
                following = float(values[row, stream])
        start += length
    return advantages


@settings(deadline=None, max_examples=100, derandomize=True)
@given(
    seed=SEEDS,
    lengths=st.lists(st.integers(1, 50), min_size=1, max_size=12),
    gammas=st.lists(st.sampled_from([0.0, 0.5, 0.99, 1.0]), min_size=1, max_size=3),
    lam=st.sampled_from([0.0, 0.8, 0.95, 1.0]),
)
def test_advantages_are_those_of_a_loop_over_every_step(
    seed: int, lengths: list[int], gammas: list[float], lam: float
) -> None:
    random = np.random.default_rng(seed)
    rows, streams = sum(lengths), len(gammas)
    rewards, values = (random.standard_normal((rows, streams)).astype(np.float32) for _ in range(2))
    next_values = random.standard_normal((len(lengths), streams)).astype(np.float32)
    endings = random.integers(0, len(Ending), len(lengths))
    next_values[endings == Ending.TERMINATED] = 0
    arrays = rewards, values, next_values, np.array(lengths), np.array(gammas, np.float32)
    before = [array.copy() for array in arrays]
    advantages, returns = gae(*arrays, lam)
    expected = slow_gae(*arrays, lam)
    np.testing.assert_allclose(advantages, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(returns, expected + values, rtol=1e-4, atol=1e-4)
    assert advantages.dtype == returns.dtype == np.float32
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_a_segment_knows_nothing_of_its_neighbors() -> None:
    """Other numbers in the second segment change nothing in the first and third."""
    random = np.random.default_rng(1)
    rewards, values = (random.standard_normal((12, 1)).astype(np.float32) for _ in range(2))
    next_values, lengths = random.standard_normal((3, 1)).astype(np.float32), np.array([5, 3, 4])
    gammas = np.array([0.9], np.float32)
    first, _ = gae(rewards, values, next_values, lengths, gammas, 0.9)
    rewards[5:8] += 100
    values[5:8] -= 50
    next_values[1] = 7
    second, _ = gae(rewards, values, next_values, lengths, gammas, 0.9)
    np.testing.assert_array_equal(first[:5], second[:5])
    np.testing.assert_array_equal(first[8:], second[8:])
    assert (first[5:8] != second[5:8]).all()


@settings(deadline=None, max_examples=100, derandomize=True)
@given(
    seed=SEEDS,
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=10),
    dtype=st.sampled_from([np.float32, np.float64]),
    slack=st.integers(0, 500),
)
def test_discounted_sums_are_those_of_a_loop(seed: int, lengths: list[int], dtype: type, slack: int) -> None:
    random = np.random.default_rng(seed)
    rows = sum(lengths)
    terms = random.standard_normal(rows).astype(dtype)
    factors = random.uniform(0, 1, rows).astype(dtype)
    factors[np.cumsum(lengths) - 1] = 0
    expected, following = np.zeros(rows), 0.0
    for row in reversed(range(rows)):
        following = expected[row] = float(terms[row]) + float(factors[row]) * following
    sums = discounted_sums(terms, factors, max(lengths) + slack)
    assert sums.dtype == dtype
    np.testing.assert_allclose(sums, expected, rtol=1e-5, atol=1e-5 if dtype is np.float32 else 1e-13)


@pytest.mark.parametrize("gamma", [0.99, 0.999])
def test_long_segments_keep_their_precision(gamma: float) -> None:
    """A thousand steps of the same reward: the geometric series."""
    ones, zeros = np.ones((1000, 1), np.float32), np.zeros((1000, 1), np.float32)
    lengths, gammas = np.array([1000]), np.array([gamma], np.float32)
    advantages, _ = gae(ones, zeros, np.zeros((1, 1), np.float32), lengths, gammas, 1.0)
    exact = (1 - gamma ** np.arange(1000, 0, -1)) / (1 - gamma)
    np.testing.assert_allclose(advantages[:, 0], exact, rtol=2e-5)
