"""Running mean and variance, as ML-Agents defines them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rl_tui.engine.learning.acting.normalization import LIMIT
from rl_tui.engine.learning.networks.normalizer import Normalizer
from rl_tui.engine.specs import State


def batches(seed: int = 0) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [(random.standard_normal((rows, 3)) * [1, 50, 0.01] + [5, -7, 0]).astype(np.float32) for rows in (1, 10, 64)]


def test_normalized_rows_are_those_of_ml_agents_formula() -> None:
    normalizer = Normalizer(3)
    steps, mean, variance_sum = 1, np.zeros(3), np.ones(3)
    for rows in batches():
        normalizer.update(rows)
        steps += len(rows)
        new_mean = mean + ((rows - mean) / steps).sum(0)
        variance_sum += ((rows - new_mean) * (rows - mean)).sum(0)
        mean = new_mean
        expected = np.clip((rows - mean) / np.sqrt(variance_sum / steps), -5, 5)
        np.testing.assert_allclose(normalizer(rows), expected, rtol=1e-4, atol=1e-5)


def test_after_many_rows_these_are_mean_and_variance() -> None:
    normalizer = Normalizer(3)
    random = np.random.default_rng(1)
    rows = (random.standard_normal((60_000, 3)) * [1, 50, 0.2] + [5, -700, 0]).astype(np.float32)
    for part in np.array_split(rows, 100):
        normalizer.update(part)
    np.testing.assert_allclose(normalizer.mean, rows.mean(0, dtype=np.float64), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(1 / normalizer.scale, rows.std(0, dtype=np.float64), rtol=5e-2)
    normalized = normalizer(rows)
    assert normalized.dtype == np.float32
    np.testing.assert_allclose(normalized.std(0), 1, rtol=5e-2)


def test_what_is_far_out_is_clipped() -> None:
    normalizer = Normalizer(2)
    normalizer.update(np.random.default_rng(0).standard_normal((1000, 2)).astype(np.float32))
    assert normalizer(np.array([[1e6, -1e6]], np.float32)).tolist() == [[LIMIT, -LIMIT]]


def test_a_column_that_never_changes_stays_finite() -> None:
    normalizer = Normalizer(1)
    for _ in range(1000):
        normalizer.update(np.full((100, 1), 3.0, np.float32))
    assert np.isfinite(normalizer(np.full((1, 1), 3.0, np.float32))).all()
    assert abs(float(normalizer(np.full((1, 1), 3.0, np.float32))[0, 0])) < 0.1


def test_what_was_handed_out_is_a_copy() -> None:
    normalizer = Normalizer(3)
    mean, scale = normalizer.mean, normalizer.scale
    normalizer.update(batches()[2])
    assert not mean.any()
    assert (scale == 1).all()


@pytest.mark.parametrize("ablated", [None, "mean", "variance_sum", "steps"])
def test_a_loaded_normalizer_continues_as_the_saved_one(ablated: str | None) -> None:
    """Each part of the state matters: with one left as it begins, the next rows come out otherwise."""
    first, second = Normalizer(3), Normalizer(3)
    for rows in batches():
        first.update(rows)
    state, fresh = first.state(), Normalizer(3).state()
    tensors = {name: (fresh if name == ablated else state).tensors[name] for name in state.tensors}
    values = json.loads(json.dumps((fresh if ablated == "steps" else state).values))
    second.load(State(tensors, values))
    for normalizer in (first, second):
        normalizer.update(batches(1)[2])
    rows = batches(2)[1]
    assert np.array_equal(first(rows), second(rows)) == (ablated is None)
