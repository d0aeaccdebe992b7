"""What a replay buffer holds and draws, against a list of rows in plain Python."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_tui.engine.learning.replay.buffer import Minibatch, ReplayBuffer
from rl_tui.engine.specs import Ending, Float32, Int64, State
from tests.learning.replay.numbered import block, camera, layout, mask, rewards, speed

GAMMAS = np.array([0.9, 0.5], np.float32)


@dataclass(frozen=True)
class Row:
    """A step, or what closes a segment: then `remaining` is 0."""

    number: int
    remaining: int
    position: int
    ending: Ending
    step: int  # steps that had been added before it


@dataclass
class Model:
    """The rows that a ring of `size` rows holds, oldest first."""

    size: int
    rows: list[Row] = field(default_factory=list)
    num_rows: int = 0  # that were ever written
    num_added: int = 0

    def add(self, lengths: list[int], endings: list[Ending]) -> None:
        for length, ending in zip(lengths, endings, strict=True):
            for position in range(length + 1):
                self.rows.append(Row(self.num_rows, length - position, position, ending, self.num_added))
                self.num_rows += 1
                self.num_added += position < length
        self.rows = self.rows[-self.size :]

    def drop_newer(self, num_added: int) -> None:
        steps = [index for index, row in enumerate(self.rows) if row.remaining and row.step < num_added]
        if num_added < self.num_added:
            self.rows = self.rows[: steps[-1] + 2] if steps else []
        self.num_added = num_added

    def resize(self, size: int) -> None:
        self.size, self.rows = size, self.rows[-size:]

    @property
    def steps(self) -> list[Row]:
        return [row for row in self.rows if row.remaining]


Segments = st.lists(st.tuples(st.integers(1, 12), st.sampled_from(Ending)), min_size=1, max_size=4)
Adding = st.builds(lambda segments: ("add", segments), Segments)
Dropping = st.builds(lambda back: ("drop", back), st.integers(0, 3))
Moving = st.builds(lambda capacity: ("move", capacity), st.integers(1, 30))


def assert_holds(buffer: ReplayBuffer, model: Model) -> None:
    """The same rows in the same order, and nothing else can be drawn; every draw is what its rows say."""
    held, steps = buffer.state().tensors, model.steps
    assert (buffer.num_steps, buffer.num_added) == (len(steps), model.num_added)
    numbers = np.array([row.number for row in model.rows])
    np.testing.assert_array_equal(held["observation.0"], speed(numbers).reshape(-1, 2))
    np.testing.assert_array_equal(held["observation.1"], camera(numbers))
    assert held["remaining"].tolist() == [row.remaining for row in model.rows]
    if not steps:
        return
    batch = buffer.sample(20, np.random.default_rng(model.num_rows), 3, GAMMAS)
    by_number = {row.number: row for row in steps}
    drawn = [by_number[int(number)] for number in batch.observations[0][:, 0]]
    assert_follows(batch, drawn)


def assert_follows(batch: Minibatch, drawn: list[Row]) -> None:
    """Three-step returns, one step after the other."""
    for index, row in enumerate(drawn):
        steps = min(3, row.remaining)
        assert batch.next_observations[0][index].tolist() == [row.number + steps, -row.number - steps]
        assert (batch.next_observations[1][index] == (row.number + steps) % 251).all()
        assert batch.terminated[index] == (steps == row.remaining and row.ending == Ending.TERMINATED)
        summed = np.zeros(2)
        for step in range(steps):
            summed += GAMMAS**step * np.array([np.sin(row.number + step), np.cos(row.number + step)])
        np.testing.assert_allclose(batch.rewards[index], summed, atol=1e-6)
        np.testing.assert_allclose(batch.discounts[index], GAMMAS**steps, rtol=1e-6)
        assert batch.continuous_actions[index].tolist() == [2 * row.number, -2 * row.number]
        assert batch.discrete_actions[index].tolist() == [row.number % 3, row.number % 2]


@settings(deadline=None, max_examples=100, derandomize=True)
@given(
    capacity=st.integers(1, 30),
    horizon=st.integers(1, 12),
    does=st.lists(st.one_of(Adding, Adding, Dropping, Moving), min_size=1, max_size=8),
)
def test_a_ring_holds_what_a_list_of_its_newest_rows_holds(
    capacity: int, horizon: int, does: list[tuple[str, object]]
) -> None:
    buffer = ReplayBuffer(layout(capacity, horizon))
    model, added = Model(buffer.layout.num_rows), [0]
    for what, argument in does:
        if what == "add":
            lengths, endings = ([segment[part] for segment in argument] for part in (0, 1))  # type: ignore[attr-defined]
            experience = block(model.num_rows, lengths, endings)
            buffer.add(experience, rewards(experience))
            model.add(lengths, endings)
            added.append(model.num_added)
        elif what == "drop":
            added = added[: max(1, len(added) - int(str(argument)))]
            buffer.drop_newer(added[-1])
            model.drop_newer(added[-1])
        else:
            saved = buffer.state()
            buffer = ReplayBuffer(layout(int(str(argument)), horizon))
            buffer.load(saved)
            model.resize(buffer.layout.num_rows)
        assert_holds(buffer, model)


def filled(lengths: list[int], capacity: int = 20, alpha: float | None = None) -> ReplayBuffer:
    """A buffer with one block."""
    buffer, experience = ReplayBuffer(layout(capacity, alpha=alpha)), block(0, lengths)
    buffer.add(experience, rewards(experience))
    return buffer


def numbers(batch: Minibatch) -> Int64:
    """Which rows were drawn."""
    return batch.observations[0][:, 0].astype(np.int64)


def test_segments_of_time_horizon_steps_fill_the_capacity_exactly() -> None:
    buffer = filled([5] * 9)
    assert buffer.num_steps == 20


def test_segments_of_one_step_fill_the_buffer_with_half_as_many() -> None:
    buffer, full = ReplayBuffer(layout(20)), []
    for first in range(0, 26, 2):
        experience = block(first, [1])
        buffer.add(experience, rewards(experience))
        full.append(buffer.is_full)
    assert full == [False] * 11 + [True] * 2
    assert buffer.num_steps == 12


@pytest.mark.parametrize("lengths", [[1] * 10, [12, 1, 7]])
def test_every_step_is_drawn_equally_often(lengths: list[int]) -> None:
    buffer, draws = filled(lengths, 20), 20_000
    counts = np.unique_counts(numbers(buffer.sample(draws, np.random.default_rng(0), 1, GAMMAS))).counts
    expected = draws / buffer.num_steps
    assert len(counts) == buffer.num_steps
    chi_squared = float(((counts - expected) ** 2 / expected).sum())
    freedom = buffer.num_steps - 1
    assert chi_squared < freedom + 4 * (2 * freedom) ** 0.5


def test_everything_is_every_step_once_in_order() -> None:
    batch = filled([3, 1]).all_steps(2, GAMMAS)
    assert numbers(batch).tolist() == [0, 1, 2, 4]
    assert batch.next_observations[0][:, 0].tolist() == [2, 3, 3, 5]
    assert batch.lengths is None


def test_uniform_draws_all_weigh_one() -> None:
    assert (filled([5]).sample(7, np.random.default_rng(0), 1, GAMMAS).weights == np.ones(7, np.float32)).all()


def test_one_step_ahead_is_the_next_row_and_its_own_reward() -> None:
    batch = filled([3, 4]).sample(50, np.random.default_rng(0), 1, GAMMAS)
    np.testing.assert_array_equal(batch.next_observations[0], speed(numbers(batch) + 1))
    np.testing.assert_allclose(batch.rewards[:, 0], np.sin(numbers(batch)), atol=1e-6)
    np.testing.assert_array_equal(batch.discounts, np.broadcast_to(GAMMAS, (50, 2)))


def test_types_stay_what_they_are() -> None:
    batch = filled([5]).sample(4, np.random.default_rng(0), 3, GAMMAS)
    assert [seen.dtype for seen in (*batch.observations, *batch.next_observations)] == [np.float32, np.uint8] * 2
    floats = batch.continuous_actions, batch.rewards, batch.discounts, batch.weights
    assert {column.dtype for column in floats} == {np.dtype(np.float32)}
    others = [column.dtype.name for column in (batch.rows, batch.discrete_actions, batch.terminated)]
    assert others == ["int64", "int64", "bool"]


def test_a_minibatch_is_no_part_of_the_buffer() -> None:
    buffer = filled([5])
    first = buffer.sample(4, np.random.default_rng(0), 1, GAMMAS)
    for column in (*first.observations, *first.next_observations, first.rewards, first.continuous_actions):
        column[:] = 77
    assert (buffer.sample(4, np.random.default_rng(0), 1, GAMMAS).observations[0] != 77).all()


def test_no_mask_is_reported_until_one_was_added() -> None:
    batch = filled([5]).sample(4, np.random.default_rng(0), 1, GAMMAS)
    assert batch.action_mask is None
    assert batch.next_action_mask is None


def test_masks_are_reported_for_the_step_and_for_what_was_seen_next() -> None:
    buffer, experience = filled([4]), block(5, [3, 2], masked=True)
    buffer.add(experience, rewards(experience))
    later = block(12, [2])
    buffer.add(later, rewards(later))
    batch = buffer.sample(200, np.random.default_rng(0), 1, GAMMAS)
    assert batch.action_mask is not None
    assert batch.next_action_mask is not None

    def known(number: int) -> list[bool]:
        return mask(np.array([number]))[0].tolist() if 5 <= number <= 11 else [True] * 5

    assert batch.action_mask.tolist() == [known(number) for number in numbers(batch).tolist()]
    assert batch.next_action_mask.tolist() == [known(number + 1) for number in numbers(batch).tolist()]


@pytest.mark.parametrize("n_step", [1, 3])
def test_what_is_allowed_next_is_unknown_after_a_truncation_only(n_step: int) -> None:
    """And of no interest where nothing is ever forbidden."""
    for masked in (False, True):
        buffer, experience = ReplayBuffer(layout(12, 4)), block(0, [4, 4, 4], list(Ending), masked)
        buffer.add(experience, rewards(experience))
        batch = buffer.all_steps(n_step, GAMMAS)
        unknown = numbers(batch)[~batch.next_mask_is_known].tolist()
        assert unknown == (list(range(14 - n_step, 14)) if masked else [])


def test_teams_are_kept_from_the_first_block_that_has_them_and_saved() -> None:
    """Teams of the steps before are 0. A buffer without them can be loaded where there are some, and the reverse."""
    buffer, plain = filled([4]), filled([3])
    state = plain.state()
    assert buffer.all_steps(1, GAMMAS).team_ids is None
    experience = replace(block(5, [3, 2]), team_ids=np.array([1, 0, 2, 3, 1]))
    buffer.add(experience, rewards(experience))
    for batch in (buffer.all_steps(1, GAMMAS), loaded(plain, buffer.state()).all_steps(1, GAMMAS)):
        assert batch.team_ids is not None
        assert batch.team_ids.tolist() == [0, 0, 0, 0, 1, 0, 2, 3, 1]
    assert loaded(buffer, state).all_steps(1, GAMMAS).team_ids is None


def loaded(buffer: ReplayBuffer, state: State) -> ReplayBuffer:
    """The buffer with the contents of `state`."""
    buffer.load(state)
    return buffer


@pytest.mark.parametrize("lengths", [[5], [2, 2]])
def test_masks_are_forgotten_with_the_rows_they_were_written_to(lengths: list[int]) -> None:
    buffer = ReplayBuffer(layout(5, 5))
    for experience in (block(0, [5], masked=True), block(6, lengths)):
        buffer.add(experience, rewards(experience))
    batch = buffer.sample(50, np.random.default_rng(0), 1, GAMMAS)
    assert batch.action_mask is not None
    assert batch.next_action_mask is not None
    assert batch.action_mask.all()
    assert batch.next_action_mask.all()


def test_the_larger_count_of_steps_is_kept() -> None:
    """A run that resumes without its replay buffer counts on, so that a later rollback finds what is newer."""
    buffer = ReplayBuffer(layout())
    buffer.drop_newer(1000)
    experience = block(0, [5, 4])
    buffer.add(experience, rewards(experience))
    assert (buffer.num_added, buffer.num_steps) == (1009, 9)
    buffer.drop_newer(1000)
    assert (buffer.num_added, buffer.num_steps) == (1000, 0)


def test_a_block_that_was_not_all_there_is_forgotten_whole() -> None:
    buffer, experience = filled([5]), block(6, [2, 4])
    buffer.add(experience, rewards(experience))
    buffer.drop_newer(8)
    assert (buffer.num_added, buffer.num_steps) == (8, 5)


def test_what_is_loaded_is_older_than_what_is_added_afterwards() -> None:
    """A replay buffer that was saved some time before the checkpoint next to it."""
    buffer, later = ReplayBuffer(layout()), block(100, [3])
    buffer.drop_newer(1000)
    buffer.load(filled([5, 4]).state())
    buffer.add(later, rewards(later))
    assert (buffer.num_added, buffer.num_steps) == (1003, 12)
    buffer.drop_newer(1000)
    assert (buffer.num_added, buffer.num_steps) == (1000, 9)
    buffer.drop_newer(8)
    assert buffer.num_steps == 0


def test_what_is_kept_must_be_given_and_nothing_else() -> None:
    experience = block(0, [5], memory=True)
    with pytest.raises(AssertionError, match="memories"):
        ReplayBuffer(layout()).add(experience, rewards(experience))
    with pytest.raises(AssertionError, match="memories"):
        ReplayBuffer(layout(memory_size=4, sequence_length=2)).add(block(0, [5]), rewards(experience))


@pytest.mark.parametrize("alpha", [None, 0.6])
def test_a_buffer_takes_the_memory_that_its_layout_predicts(alpha: float | None) -> None:
    shape = layout(50_000, 64, memory_size=4, value_memory_size=4, sequence_length=8, alpha=alpha)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        buffer = ReplayBuffer(shape)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert buffer.layout.bytes == shape.bytes
    assert 0 <= after - before - shape.bytes < 20_000


def test_the_memory_of_a_row_is_the_sum_of_its_columns() -> None:
    shape = layout(capacity=100, time_horizon=10, memory_size=4, value_memory_size=6)
    seen, done, forbidden, streams, remembered, place = 2 * 4 + 12, 2 * 4 + 2 * 8, 5, 2 * 4, (4 + 6) * 4, 4 + 4 + 1 + 8
    assert shape.num_rows == 110
    assert shape.bytes == 110 * (seen + done + forbidden + streams + remembered + place)


def mean_error(batch: Minibatch) -> Float32:
    """An error for every row, by its number."""
    return (numbers(batch) + 1).astype(np.float32)


@pytest.mark.parametrize("alpha", [None, 0.6])
def test_a_restored_buffer_draws_the_same(alpha: float | None) -> None:
    buffer = filled([5, 3, 5, 5, 2], alpha=alpha)
    if alpha is not None:
        batch = buffer.sample(15, np.random.default_rng(1), 1, GAMMAS)
        buffer.update_priorities(batch.rows, mean_error(batch))
    restored = ReplayBuffer(buffer.layout)
    old = block(500, [3])
    restored.add(old, rewards(old))
    restored.load(buffer.state())
    more = block(100, [4])
    for each in (buffer, restored):
        each.add(more, rewards(more))
    random, again = np.random.default_rng(5), np.random.default_rng(5)
    for _ in range(3):
        batch, same = buffer.sample(30, random, 2, GAMMAS, 0.4), restored.sample(30, again, 2, GAMMAS, 0.4)
        for field_name in (
            "rows",
            "rewards",
            "discounts",
            "terminated",
            "weights",
            "continuous_actions",
            "discrete_actions",
        ):
            np.testing.assert_array_equal(getattr(batch, field_name), getattr(same, field_name))
        np.testing.assert_array_equal(batch.observations[1], same.observations[1])
    assert restored.num_added == buffer.num_added
