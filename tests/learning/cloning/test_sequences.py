"""How demonstrations are divided into sequences, and these into mini-batches."""

from __future__ import annotations

import numpy as np
import pytest

from rl_tui.engine.learning.cloning.sequences import DemonstratedSequences, Passes

EPISODES = np.array([[0, 5], [5, 6], [6, 14]])


def test_without_memory_every_row_is_a_sequence() -> None:
    sequences = DemonstratedSequences.of(EPISODES, 1)
    assert (len(sequences), sequences.num_rows) == (14, 14)
    assert sequences.rows(np.array([7, 0])).tolist() == [7, 0]


def test_sequences_begin_with_their_episode_and_never_cross_its_end() -> None:
    sequences = DemonstratedSequences.of(EPISODES, 4)
    assert sequences.starts.tolist() == [0, 4, 5, 6, 10]
    assert sequences.lengths.tolist() == [4, 1, 1, 4, 4]
    assert sequences.rows(np.array([4, 2, 1])).tolist() == [10, 11, 12, 13, 5, 4]


def test_sequences_of_some_episodes_have_their_rows_alone() -> None:
    sequences = DemonstratedSequences.of(EPISODES[[2, 0]], 3)
    assert sequences.rows(np.arange(len(sequences))).tolist() == [*range(6, 14), *range(5)]


@pytest.mark.parametrize("longest", [1, 4, 8])
@pytest.mark.parametrize("batch_size", [1, 7, 32, 1000])
@pytest.mark.parametrize("most_steps", [0, 100, 256])
def test_sizes_are_those_of_ml_agents(longest: int, batch_size: int, most_steps: int) -> None:
    """Its formulas, for episodes of whole sequences."""
    sequences = DemonstratedSequences.of(np.array([[0, 96], [96, 160]]), longest)
    size = max(min(batch_size, 160) // longest, 1)
    most = most_steps // size
    minibatches = (160 // size if most == 0 else min(160 // size, most)) // longest
    if 0 < most_steps < size * longest:
        minibatches = 1  # ML-Agents: all of them without memory, none with it
    passes = Passes(batch_size=batch_size, count=2, most_steps=most_steps)
    assert passes.sizes(sequences) == (size, minibatches)
    drawn = list(passes.minibatches(sequences, np.random.default_rng(0)))
    assert [len(chosen) for chosen in drawn] == [size] * (2 * minibatches)


def test_a_pass_has_every_sequence_once_but_those_that_fill_no_mini_batch() -> None:
    sequences = DemonstratedSequences.of(EPISODES, 1)
    drawn = list(Passes(batch_size=4, count=50, most_steps=0).minibatches(sequences, np.random.default_rng(0)))
    passes = np.array(drawn).reshape(50, 12)
    assert all(len(set(of.tolist())) == 12 for of in passes)
    assert set(passes.ravel().tolist()) == set(range(14))


def test_spaced_sequences_are_all_or_evenly_among_them() -> None:
    sequences = DemonstratedSequences.of(EPISODES, 1)
    assert sequences.spaced(100).tolist() == list(range(14))
    assert sequences.spaced(3).tolist() == [0, 6, 13]
