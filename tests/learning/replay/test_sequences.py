"""Steps drawn in sequences, for a policy with memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_tui.engine.learning.replay.buffer import Minibatch, ReplayBuffer
from rl_tui.engine.specs import Ending
from tests.learning.replay.numbered import MEMORY, block, layout, rewards, speed

GAMMAS = np.array([0.9, 0.5], np.float32)


def filled(segments: list[int], capacity: int, length: int, horizon: int = 5) -> ReplayBuffer:
    """A buffer for sequences of `length` steps; the critic remembers twice the number of the row."""
    shape = layout(capacity, horizon, memory_size=MEMORY, value_memory_size=1, sequence_length=length)
    buffer, experience = ReplayBuffer(shape), block(0, segments, [Ending.TERMINATED] * len(segments), memory=True)
    buffer.add(experience, rewards(experience), experience.observations[0][:, :1] * 2)
    return buffer


def firsts(batch: Minibatch) -> list[int]:
    """The number of the first row of each sequence."""
    assert batch.lengths is not None
    numbers = batch.observations[0][np.cumsum(batch.lengths) - batch.lengths, 0]
    return [int(number) for number in numbers]


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    segments=st.lists(st.integers(1, 12), min_size=1, max_size=6),
    capacity=st.integers(13, 40),
    length=st.integers(1, 8),
    count=st.integers(1, 60),
)
def test_sequences_are_whole_aligned_and_in_time_order(
    segments: list[int], capacity: int, length: int, count: int
) -> None:
    buffer = filled(segments, capacity, length, 12)
    begins = np.cumsum([0, *(segment + 1 for segment in segments)])
    lengths_of = {
        int(begin) + position: min(length, segment - position)
        for begin, segment in zip(begins, segments, strict=False)
        for position in range(0, segment, length)
    }
    batch = buffer.sample_sequences(count, np.random.default_rng(0), GAMMAS)
    assert batch.lengths is not None
    assert batch.memories is not None
    assert batch.value_memories is not None
    assert batch.lengths.tolist() == [lengths_of[first] for first in firsts(batch)]
    assert batch.lengths.dtype == np.int64
    expected = np.concatenate([np.arange(first, first + lengths_of[first]) for first in firsts(batch)])
    np.testing.assert_array_equal(batch.observations[0], speed(expected))
    np.testing.assert_array_equal(batch.next_observations[0], speed(expected + 1))
    closings = set((begins[1:] - 1).tolist())
    assert batch.terminated.tolist() == [int(number) + 1 in closings for number in expected]
    np.testing.assert_array_equal(batch.memories, np.repeat(np.array(firsts(batch))[:, None], MEMORY, 1))
    np.testing.assert_array_equal(batch.value_memories[:, 0], 2 * np.array(firsts(batch)))
    np.testing.assert_allclose(batch.rewards[:, 0], np.sin(expected), atol=1e-6)


@pytest.mark.parametrize("segments", [[64] * 10, [20] * 30, [3, 64, 17, 1, 40] * 5])
def test_about_as_many_rows_are_drawn_as_were_requested(segments: list[int]) -> None:
    buffer, random = filled(segments, 1000, 16, 64), np.random.default_rng(0)
    drawn = [len(buffer.sample_sequences(256, random, GAMMAS).rows) for _ in range(50)]
    assert abs(float(np.mean(drawn)) - 256) < 12


def test_every_sequence_is_drawn_equally_often() -> None:
    buffer = filled([12, 1, 7, 3, 3], 40, 4)
    found = firsts(buffer.sample_sequences(26 * 1000, np.random.default_rng(0), GAMMAS))
    counts = np.unique_counts(np.array(found)).counts
    assert len(counts) == 3 + 1 + 2 + 1 + 1
    expected = len(found) / len(counts)
    assert float(((counts - expected) ** 2 / expected).sum()) < 7 + 4 * 14**0.5


def test_the_rest_of_an_overwritten_sequence_is_not_drawn() -> None:
    buffer = filled([5, 5, 5, 5], 20, 3)
    experience = block(24, [1], memory=True)
    buffer.add(experience, rewards(experience), np.zeros((1, 1), np.float32))  # over the first two rows
    batch = buffer.sample_sequences(500, np.random.default_rng(0), GAMMAS)
    assert set(firsts(batch)) == {3, 6, 9, 12, 15, 18, 21, 24}


def test_sequences_go_over_the_end_of_the_ring() -> None:
    buffer = filled([5, 5, 5, 3], 20, 5)
    experience = block(22, [5], memory=True)
    buffer.add(experience, rewards(experience), np.zeros((5, 1), np.float32))
    batch = buffer.sample_sequences(500, np.random.default_rng(0), GAMMAS)
    assert batch.lengths is not None
    assert 22 in firsts(batch)
    expected = np.concatenate(
        [np.arange(first, first + length) for first, length in zip(firsts(batch), batch.lengths, strict=True)]
    )
    np.testing.assert_array_equal(batch.observations[0], speed(expected))
    np.testing.assert_array_equal(batch.next_observations[0], speed(expected + 1))


def test_going_back_forgets_sequences_too() -> None:
    buffer = filled([5, 5], 20, 3)
    experience = block(12, [5], memory=True)
    buffer.add(experience, rewards(experience), np.zeros((5, 1), np.float32))
    buffer.drop_newer(10)
    restored = ReplayBuffer(buffer.layout)
    restored.load(buffer.state())
    for each in (buffer, restored):
        assert set(firsts(each.sample_sequences(300, np.random.default_rng(0), GAMMAS))) == {0, 3, 6, 9}


def test_steps_whose_sequence_has_lost_its_begin_cannot_be_drawn() -> None:
    buffer = filled([6, 6], 8, 6, 8)  # nine rows: four are left of the first segment, with the one that closes it
    assert buffer.num_steps == 7
    experience = block(14, [4], memory=True)
    buffer.add(experience, rewards(experience), np.zeros((4, 1), np.float32))
    buffer.drop_newer(12)
    assert buffer.num_steps == 0
    buffer.add(experience, rewards(experience), np.zeros((4, 1), np.float32))
    assert set(firsts(buffer.sample_sequences(10, np.random.default_rng(0), GAMMAS))) == {14}


def test_everything_is_every_step_in_order_with_its_sequences() -> None:
    batch = filled([5, 1, 4], 20, 3).all_steps(1, GAMMAS)
    expected = [0, 1, 2, 3, 4, 6, 8, 9, 10, 11]
    np.testing.assert_array_equal(batch.observations[0], speed(np.array(expected)))
    assert batch.lengths is not None
    assert batch.memories is not None
    assert batch.lengths.tolist() == [3, 2, 1, 3, 1]
    assert batch.memories[:, 0].tolist() == [0, 3, 6, 8, 11]
