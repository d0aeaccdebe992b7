"""Steps drawn in proportion to their errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_tui.engine.errors import NonFiniteError
from rl_tui.engine.learning.replay.buffer import ReplayBuffer
from rl_tui.engine.learning.replay.priorities import EPSILON, Priorities, SumTree
from tests.learning.replay.numbered import block, layout, rewards

GAMMAS = np.array([0.9, 0.5], np.float32)


@settings(deadline=None, max_examples=100, derandomize=True)
@given(num_rows=st.integers(1, 70), writes=st.integers(1, 5), seed=st.integers(0, 999))
def test_a_sum_tree_finds_the_row_in_which_a_running_sum_passes_the_share(
    num_rows: int, writes: int, seed: int
) -> None:
    random, tree, values = np.random.default_rng(seed), SumTree(num_rows), np.zeros(num_rows)
    for _ in range(writes):
        rows = random.integers(0, num_rows, random.integers(1, 80))
        chosen = random.integers(0, 4, num_rows).astype(np.float64)  # whole numbers: sums are exact
        values[rows] = chosen[rows]
        tree[rows] = chosen[rows]
    assert tree.total == values.sum()
    np.testing.assert_array_equal(tree[np.arange(num_rows)], values)
    if tree.total:
        shares = np.concatenate([random.random(50) * tree.total, np.arange(tree.total)])
        np.testing.assert_array_equal(tree.find(shares), np.searchsorted(np.cumsum(values), shares, side="right"))


def filled(lengths: list[int], alpha: float, capacity: int = 20) -> ReplayBuffer:
    """A buffer with one block."""
    buffer, experience = ReplayBuffer(layout(capacity, alpha=alpha)), block(0, lengths)
    buffer.add(experience, rewards(experience))
    return buffer


def probabilities(errors: list[float], alpha: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Equation 1 of Schaul et al. 2016."""
    priorities = (np.array(errors) + EPSILON) ** alpha
    return np.asarray(priorities / priorities.sum())


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_steps_are_drawn_in_proportion_to_their_priorities_and_weighed_against_it(alpha: float) -> None:
    buffer, errors, draws = filled([3, 2], alpha), [0.5, 4.0, 1.0, 0.0, 2.0], 40_000
    buffer.update_priorities(np.array([0, 1, 2, 4, 5]), np.array(errors, np.float32))
    batch = buffer.sample(draws, np.random.default_rng(0), 1, GAMMAS, beta=0.5)
    expected = probabilities(errors, alpha)
    shares = np.bincount(batch.rows, minlength=6)[[0, 1, 2, 4, 5]] / draws
    np.testing.assert_allclose(shares, expected, atol=2 / draws)  # stratified: far less than the error of free draws
    by_row = dict(zip([0, 1, 2, 4, 5], (5 * expected) ** -0.5, strict=True))
    weights = np.array([by_row[row] for row in batch.rows.tolist()])
    np.testing.assert_allclose(batch.weights, weights / weights.max(), rtol=1e-5)
    assert batch.weights.dtype == np.float32


def test_without_correction_all_weigh_one() -> None:
    buffer = filled([5], 1.0)
    buffer.update_priorities(np.array([0, 1]), np.array([9, 0.1], np.float32))
    assert (buffer.sample(10, np.random.default_rng(0), 1, GAMMAS).weights == 1).all()


def test_only_the_size_of_an_error_matters() -> None:
    buffer = filled([2], 1.0)
    buffer.update_priorities(np.array([0, 1]), np.array([-3, 1], np.float32))
    rows = buffer.sample(4000, np.random.default_rng(0), 1, GAMMAS).rows
    assert abs(float((rows == 0).mean()) - 0.75) < 0.001


def test_a_step_that_comes_has_the_largest_priority_that_was() -> None:
    buffer = filled([4], 1.0)
    buffer.update_priorities(np.arange(4), np.array([7, 1, 1, 1], np.float32))
    buffer.update_priorities(np.arange(4), np.array([1, 1, 1, 1], np.float32))
    experience = block(5, [1])
    buffer.add(experience, rewards(experience))
    rows = buffer.sample(11_000, np.random.default_rng(0), 1, GAMMAS).rows
    assert abs(float((rows == 5).mean()) - 7 / 11) < 0.001


def test_rows_without_a_step_are_never_drawn() -> None:
    random, first, sizes = np.random.default_rng(0), 0, [[5], [1, 1, 1], [9], [3, 2], [30], [2]]
    buffer = ReplayBuffer(layout(12, 4, alpha=0.6))
    for lengths in sizes:
        experience = block(first, lengths)
        first += sum(lengths) + len(lengths)
        buffer.add(experience, rewards(experience))
        drawn = buffer.sample(500, random, 1, GAMMAS)
        assert len(set(drawn.rows.tolist())) == buffer.num_steps
        np.testing.assert_array_equal(drawn.next_observations[0][:, 0], drawn.observations[0][:, 0] + 1)
        buffer.update_priorities(drawn.rows, random.random(500).astype(np.float32))


def test_what_was_held_before_a_state_was_loaded_is_not_drawn() -> None:
    buffer = filled([20], 0.6)
    buffer.load(filled([3], 0.6).state())
    assert set(buffer.sample(100, np.random.default_rng(0), 1, GAMMAS).rows.tolist()) == {0, 1, 2}


def test_what_was_gone_back_over_is_not_drawn() -> None:
    buffer = filled([4, 3], 0.6)
    experience = block(9, [5, 1])
    buffer.add(experience, rewards(experience))
    buffer.drop_newer(7)
    drawn = buffer.sample(500, np.random.default_rng(0), 1, GAMMAS)
    assert set(drawn.rows.tolist()) == {0, 1, 2, 3, 5, 6, 7}


class Extreme(np.random.Generator):
    """Its first numbers are the largest below one."""

    first = True

    def random(self, size: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:  # type: ignore[override]  # used so
        drawn = np.full(size, 1 - 2.0**-53) if self.first else super().random(size)
        self.first = False
        return drawn


def test_a_share_that_is_rounded_to_the_total_is_drawn_again() -> None:
    priorities = Priorities(8, 1.0)
    priorities[np.arange(3)] = 1.0
    rows = priorities.draw(300, Extreme(np.random.PCG64(0)))
    assert set(rows.tolist()) == {0, 1, 2}


@pytest.mark.parametrize("error", [np.nan, np.inf])
def test_an_error_that_is_not_finite_is_refused(error: float) -> None:
    buffer = filled([5], 0.6)
    before = buffer.state().tensors["priorities"]
    with pytest.raises(NonFiniteError):
        buffer.update_priorities(np.array([0, 1]), np.array([1, error], np.float32))
    np.testing.assert_array_equal(buffer.state().tensors["priorities"], before)


def test_rows_without_a_step_get_no_priority() -> None:
    with pytest.raises(AssertionError, match="no longer hold steps"):
        filled([4], 0.6).update_priorities(np.array([4]), np.ones(1, np.float32))
